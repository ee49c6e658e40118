"""What a character's file says beyond bodies, joints and shapes: <equality> and <contact><exclude>."""

import dataclasses
import logging
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

import mujoco
import numpy as np
import warp as wp  # noqa: TID253  (this module is imported by engines on Newton alone)

from mimickit.engines.mujoco_scene import excluded_pairs

_log = logging.getLogger("mimickit.engines")
_KIND = mujoco.mjtEq
_BETWEEN_BODIES = (_KIND.mjEQ_CONNECT, _KIND.mjEQ_WELD)
_BODY, _JOINT = int(mujoco.mjtObj.mjOBJ_BODY), int(mujoco.mjtObj.mjOBJ_JOINT)
_NONE = _WORLD = -1


def add_excludes(builder: Any, mj: Any, body_of: Callable[[int], int]) -> None:
    """Let excluded bodies pass through each other. body_of: the builder's index of a body of mj."""
    for first, second in excluded_pairs(mj):
        if first:
            _let_pass(builder, body_of(first), body_of(second))


def add_ground_excludes(builder: Any, mj: Any, bodies_of: Callable[[int], Iterable[int]]) -> None:
    """Let bodies that are excluded from the world pass through the ground. bodies_of: the builder's indices of a body
    of mj in all worlds.
    """
    for first, second in excluded_pairs(mj):
        for body in bodies_of(second) if not first else ():
            _let_pass(builder, _WORLD, body)


def _let_pass(builder: Any, first: int, second: int) -> None:
    for a in builder.body_shapes.get(first, []):
        for b in builder.body_shapes.get(second, []):
            builder.add_shape_collision_filter_pair(a, b)


def add_equalities(
    builder: Any, mj: Any, *, body_of: Callable[[int], int | None], joint_of: Callable[[int], int], world: int
) -> None:
    """Couple joints and tie bodies together. body_of, joint_of: the builder's indices of bodies and joints of mj; None
    for a body to which nothing can be tied.
    """
    for row in range(mj.neq):
        kind = _KIND(mj.eq_type[row])
        ids = int(mj.eq_obj1id[row]), int(mj.eq_obj2id[row])
        values: dict[str, Any] = {"type": int(kind), "enabled": bool(mj.eq_active0[row]), "world": world}
        if kind == _KIND.mjEQ_JOINT:
            values |= _coupling(mj.eq_data[row]) | {
                "joint1": joint_of(ids[0]), "joint2": joint_of(ids[1]) if ids[1] >= 0 else _NONE,
            }  # fmt: skip
        elif kind in _BETWEEN_BODIES and mj.eq_objtype[row] == _BODY and None not in map(body_of, ids):
            tie = _point(mj.eq_data[row]) if kind == _KIND.mjEQ_CONNECT else _weld(mj.eq_data[row])
            values |= tie | {"body1": body_of(ids[0]), "body2": body_of(ids[1])}
        else:
            of_bodies = "with the world" if mj.eq_objtype[row] == _BODY else "between sites"
            what = of_bodies if kind in _BETWEEN_BODIES else f"of type {kind.name}"
            if world <= 0:  # all worlds are alike
                _log.warning("equality constraint %r, %s, is not simulated by this engine", mj.equality(row).name, what)
            continue
        _add_row(builder, values, mj.eq_solref[row], mj.eq_solimp[row])


def can_couple(mj: Any) -> bool:
    """Whether there is something to couple, and mujoco-warp and MuJoCo are of one mind about what that is; they are
    not where Isaac Lab has asked for an older mujoco-warp. Says so.
    """
    import mujoco_warp

    kinds: dict[str, Any] = {field.name: field.type for field in dataclasses.fields(mujoco_warp.Model)}
    if mj.neq and int(kinds["eq_data"].dtype._length_) != int(mujoco.mjNEQDATA):
        _log.warning(
            "equality constraints (%d) are not simulated: mujoco-warp %s has another layout of them than MuJoCo %s",
            mj.neq, version("mujoco-warp"), mujoco.__version__,
        )  # fmt: skip
        return False
    return bool(mj.neq)


def warn_of_pairs(mj: Any) -> None:
    """<contact><pair> is MuJoCo's alone."""
    if mj.npair:
        _log.warning("contact pairs (%d) are not simulated by this engine, only what collides by itself", mj.npair)


def _coupling(data: np.ndarray) -> dict[str, Any]:
    return {"objtype": _JOINT, "polycoef": [float(c) for c in data[:5]]}


def _point(data: np.ndarray) -> dict[str, Any]:
    """Of the first body."""
    return {"objtype": _BODY, "anchor": wp.vec3(*(float(v) for v in data[:3]))}


def _weld(data: np.ndarray) -> dict[str, Any]:
    turn = np.roll(data[6:10], -1)  # x y z w
    return {
        "objtype": _BODY,
        "anchor": wp.vec3(*(float(v) for v in data[:3])),
        "relpose": wp.transform(wp.vec3(*(float(v) for v in data[3:6])), wp.quat(*(float(v) for v in turn))),
        "torquescale": float(data[10]),
    }


def _add_row(builder: Any, values: dict[str, Any], solref: np.ndarray, solimp: np.ndarray) -> None:
    """Every column gets a value: Newton takes a column with gaps for a mistake."""
    row = {f"mujoco:equality_constraint_{name}": value for name, value in values.items()}
    row["mujoco:eq_solref"], row["mujoco:eq_solimp"] = wp.vec2(*solref), [float(v) for v in solimp]
    for attribute in builder.get_custom_attributes_by_frequency(["mujoco:equality_constraint"]):
        row.setdefault(attribute.key, None)
    builder.add_custom_values(**row)
