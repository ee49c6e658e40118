"""Room in the solver, which is allotted beforehand: mujoco-warp drops the contacts and constraints that find none."""

import logging
from typing import Any

import mujoco
import torch
import warp as wp  # noqa: TID253  (this module is imported by engines on Newton alone)

_log = logging.getLogger("mimickit.engines")
_CONTACTS_A_BODY = 6
_MIN_CONTACTS = 32
_EQ = mujoco.mjtEq
_EQUALITY_ROWS = {int(_EQ.mjEQ_CONNECT): 3, int(_EQ.mjEQ_WELD): 6, int(_EQ.mjEQ_JOINT): 1}


def contact_room(mj: Any, asked: int, engine: str) -> int:
    """Contacts of one environment: what was asked for, or an estimate for 0; no less than the model's own pose has,
    which the solver insists on. engine: named in the warning of it.
    """
    wanted = asked or max(_MIN_CONTACTS, _CONTACTS_A_BODY * (mj.nbody - 1))
    data = mujoco.MjData(mj)
    mujoco.mj_forward(mj, data)
    if 0 < asked < data.ncon:
        _log.warning("engine %s: max_contacts: %d are too few for the first pose, %d are taken",
                     engine, asked, data.ncon)  # fmt: skip
    return max(wanted, int(data.ncon))


def constraint_rows(mj: Any, contacts: int) -> int:
    """Of one environment with so many contacts, all limits, friction and equality constraints at work."""
    condim = int(mj.geom_condim.max(initial=1))
    is_elliptic = mj.opt.cone == mujoco.mjtCone.mjCONE_ELLIPTIC
    of_contact = condim if is_elliptic else max(1, 2 * (condim - 1))
    equalities = sum(_EQUALITY_ROWS.get(int(kind), 0) for kind in mj.eq_type)
    return of_contact * contacts + 2 * int(mj.nv) + equalities


class ContactRoom:
    """Says once that contacts were dropped, and what to change."""

    def __init__(self, solver: Any, engine: str) -> None:
        """solver: a SolverMuJoCo that has not stepped yet; engine: whose max_contacts it is."""
        from mujoco_warp import OverflowType

        solver.mjw_model.opt.warn_overflow = False  # it would print at every step, and name its own fields
        self._overflow = wp.to_torch(solver.mjw_data.overflow)
        self._kinds = int(OverflowType.NEFC | OverflowType.BROADPHASE | OverflowType.NARROWPHASE)
        self._room = int(solver.mjw_data.naconmax) // int(solver.mjw_data.nworld)
        self._engine, self._told = engine, False

    def check(self) -> None:
        """To be called now and then; costs next to nothing."""
        if self._told:
            return
        full = (self._overflow & self._kinds) != 0
        if bool(full.any()):
            self._told = True
            env = int(torch.nonzero(full)[0])
            _log.warning(
                "engine %s: environment %d had more contacts than the %d there is room for; some have no effect. Set "
                "max_contacts in the engine's file to more", self._engine, env, self._room,
            )  # fmt: skip
