"""What the engines and the motion library need to know of a character: bodies, joints, limits, gains.

Everything is taken from MuJoCo's own compiled model, so that defaults, classes, omitted attributes, degrees
and radians mean here what they mean in the simulation. What this module adds is structure: which joints
form one ball joint, their limits and gains, and refusal by name of what a character may not hold.

Ball joints. A body with a native ball joint, or with exactly three hinges about its own x, y and z axes
(any order, either sign, any names, one common anchor), is one ball joint of three dofs. They are always the
exponential map (rad) of the joint's rotation in the body frame, x y z; limits and gains of the hinges are
sorted and flipped to fit.
"""

import itertools
import math
import os
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch
from numpy.typing import NDArray

from mimickit.anim.char_file import load_spec
from mimickit.anim.drives import HOME, compiled
from mimickit.anim.source import CharacterError
from mimickit.util.rotations import quat_conjugate, quat_mul, quat_to_exp_map

FloatArray = NDArray[np.float64]

_ANCHOR_TOLERANCE = 1e-6  # m, between the anchors of hinges that form one ball joint
_AXIS_TOLERANCE = 1e-4  # of a unit axis's components


class JointKind(Enum):
    """How a body moves relative to its parent."""

    HINGE = "hinge"
    BALL = "ball"
    FIXED = "fixed"


@dataclass(frozen=True)
class BodyInfo:
    """One body: its place at rest in the parent's frame."""

    name: str
    parent: int  # index of the parent body, -1 for the root
    pos: FloatArray  # (3,) m
    quat: FloatArray  # (4,) x y z w
    mass: float  # kg


@dataclass(frozen=True)
class JointInfo:
    """What connects a body to its parent. k is the number of dofs: 1 hinge, 3 ball, 0 fixed."""

    name: str
    kind: JointKind
    body: int  # index of the child body
    source_joints: tuple[str, ...]  # joints of the file, in the order of the dofs
    axes: FloatArray  # (k, 3) unit, body frame; identity for a ball
    pos: FloatArray  # (3,) m, anchor in the body frame
    limits: FloatArray  # (k, 2) rad, -inf and inf where the file sets none
    stiffness: FloatArray  # (k,) N m / rad, the proportional gain
    damping: FloatArray  # (k,) N m s / rad, the derivative gain
    armature: FloatArray  # (k,) kg m^2
    frictionloss: FloatArray  # (k,) N m
    torque_limit: FloatArray  # (k,) N m, inf where the file sets none
    dof_start: int  # first dof in the character's dof vector
    dof_dim: int


@dataclass(frozen=True)
class CharacterInfo:
    """A character: bodies depth-first, and one joint for every body but the root, in the same order."""

    path: Path
    name: str
    bodies: tuple[BodyInfo, ...]
    joints: tuple[JointInfo, ...]
    has_free_root: bool
    num_dofs: int
    home: FloatArray
    """(6 + D,) pose to begin in: root position (m), root rotation and dofs (exponential maps and angles, rad). The
    keyframe "home", else the root where the file puts it and all else zero."""


def read_mjcf(path: str | os.PathLike[str]) -> CharacterInfo:
    """Bodies and joints of the one character in the file, of whatever format. Raises CharacterError."""
    path = Path(path)
    spec = load_spec(path)
    return _Reader(path, compiled(spec, str(path))).read(spec.modelname)


class _Reader:
    """Walks one compiled model."""

    def __init__(self, path: Path, model: Any) -> None:
        self._path = path
        self._model = model

    def read(self, model_name: str) -> CharacterInfo:
        model = self._model
        tops = [b for b in range(1, model.nbody) if model.body_parentid[b] == 0]
        if len(tops) != 1:
            names = ", ".join(self._body_name(b) for b in tops) or "none"
            raise CharacterError(
                f"{self._path}: a character has one root body below worldbody, found {len(tops)}: {names}"
            )
        bodies = tuple(self._body(b) for b in range(1, model.nbody))
        joints: list[JointInfo] = []
        dof = 0
        for b in range(2, model.nbody):
            joints.append(self._joint(b, dof))
            dof += joints[-1].dof_dim
        return CharacterInfo(
            path=self._path,
            name=model_name,
            bodies=bodies,
            joints=tuple(joints),
            has_free_root=self._has_free_root(),
            num_dofs=dof,
            home=self._home(joints, dof),
        )

    def _home(self, joints: list[JointInfo], num_dofs: int) -> FloatArray:
        model, home = self._model, np.zeros(6 + num_dofs)
        home[:3] = model.body_pos[1]
        key = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_KEY, HOME)
        if key < 0:
            return home
        data = mujoco.MjData(model)
        mujoco.mj_resetDataKeyframe(model, data, key)
        mujoco.mj_kinematics(model, data)
        home[:3], rot = data.xpos[1], torch.from_numpy(np.roll(data.xquat, -1, axis=1))
        home[3:6] = quat_to_exp_map(rot[1])
        for joint in joints:  # of one made of hinges the axes don't commute: it is what the body has turned by
            body = joint.body + 1
            rest = torch.from_numpy(np.roll(model.body_quat[body], -1))
            unturned = quat_mul(rot[int(model.body_parentid[body])], rest)
            turn = quat_to_exp_map(quat_mul(quat_conjugate(unturned), rot[body])).numpy()
            home[6 + joint.dof_start : 6 + joint.dof_start + joint.dof_dim] = joint.axes @ turn
        return home

    def _has_free_root(self) -> bool:
        joints = self._body_joints(1)
        if not joints:
            return False
        if len(joints) == 1 and self._model.jnt_type[joints[0]] == mujoco.mjtJoint.mjJNT_FREE:
            return True
        raise self._error(1, joints, "the root body may have a free joint or none")

    def _body(self, b: int) -> BodyInfo:
        model = self._model
        return BodyInfo(
            name=self._body_name(b),
            parent=int(model.body_parentid[b]) - 1,
            pos=model.body_pos[b].copy(),
            quat=np.roll(model.body_quat[b], -1),
            mass=float(model.body_mass[b]),
        )

    def _joint(self, b: int, dof_start: int) -> JointInfo:
        joints = self._body_joints(b)
        kinds = [mujoco.mjtJoint(self._model.jnt_type[j]) for j in joints]
        hinge, ball = mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_BALL
        if not joints:
            return self._fixed(b, dof_start)
        if kinds == [hinge]:
            return self._hinge(b, joints[0], dof_start)
        if kinds == [ball]:
            return self._native_ball(joints[0], dof_start)
        if kinds == [hinge, hinge, hinge]:
            return self._hinge_group(b, joints, dof_start)
        found = ", ".join(kind.name.removeprefix("mjJNT_").lower() for kind in kinds)
        raise self._error(b, joints, f"expected one hinge, one ball, three hinges or no joint, found {found}")

    def _fixed(self, b: int, dof_start: int) -> JointInfo:
        none = np.zeros(0)
        return JointInfo(
            name=self._body_name(b),
            kind=JointKind.FIXED,
            body=b - 1,
            source_joints=(),
            axes=np.zeros((0, 3)),
            pos=np.zeros(3),
            limits=np.zeros((0, 2)),
            stiffness=none,
            damping=none,
            armature=none,
            frictionloss=none,
            torque_limit=none,
            dof_start=dof_start,
            dof_dim=0,
        )

    def _hinge(self, b: int, j: int, dof_start: int) -> JointInfo:
        if self._model.qpos0[self._model.jnt_qposadr[j]] != 0.0:
            raise self._error(b, [j], "a joint's ref must be 0")
        axes, limits = self._model.jnt_axis[[j]].copy(), self._limits(j)[None]
        return self._build([j], JointKind.HINGE, axes=axes, limits=limits, dof_start=dof_start)

    def _native_ball(self, j: int, dof_start: int) -> JointInfo:
        _, cone = self._limits(j)
        limits = np.tile([-cone, cone], (3, 1))
        return self._build([j], JointKind.BALL, axes=np.eye(3), limits=limits, dof_start=dof_start)

    def _hinge_group(self, b: int, joints: list[int], dof_start: int) -> JointInfo:
        model = self._model
        anchors = model.jnt_pos[joints]
        if np.abs(anchors - anchors[0]).max() > _ANCHOR_TOLERANCE:
            raise self._error(b, joints, "three hinges form a ball joint only at one common pos")
        if any(model.qpos0[model.jnt_qposadr[j]] != 0.0 for j in joints):
            raise self._error(b, joints, "a joint's ref must be 0")
        axes = model.jnt_axis[joints]
        order = np.abs(axes).argmax(axis=0)  # hinge that turns about x, about y, about z
        signs = np.sign(axes[order, range(3)])
        if sorted(order) != [0, 1, 2] or np.abs(axes[order] - np.diag(signs)).max() > _AXIS_TOLERANCE:
            found = "; ".join(" ".join(f"{v:g}" for v in axis) for axis in axes)
            raise self._error(b, joints, f"three hinges on one body must turn about its x, y and z, found {found}")
        sorted_joints = [joints[i] for i in order]
        limits = np.stack([self._limits(j) for j in sorted_joints])
        limits = np.where(signs[:, None] < 0.0, -limits[:, ::-1], limits)
        name = _common_name([self._model.joint(j).name for j in joints]) or self._body_name(b)
        return self._build(sorted_joints, JointKind.BALL, axes=np.eye(3), limits=limits, dof_start=dof_start, name=name)

    def _build(
        self,
        joints: list[int],
        kind: JointKind,
        *,
        axes: FloatArray,
        limits: FloatArray,
        dof_start: int,
        name: str | None = None,
    ) -> JointInfo:
        """A joint whose dofs are moved by `joints`, one each or a native ball joint for all three."""
        model = self._model
        per_dof = joints * (len(axes) // len(joints))
        dofs = [int(model.jnt_dofadr[j]) for j in joints]
        dofs = dofs if len(dofs) == len(axes) else [dofs[0] + i for i in range(len(axes))]
        gains = [self._gains(j, d) for j, d in zip(per_dof, dofs, strict=True)]
        return JointInfo(
            name=name or self._joint_name(joints[0]),
            kind=kind,
            body=int(model.jnt_bodyid[joints[0]]) - 1,
            source_joints=tuple(self._joint_name(j) for j in joints),
            axes=axes,
            pos=model.jnt_pos[joints[0]].copy(),
            limits=limits,
            stiffness=np.array([kp for kp, _ in gains]),
            damping=np.array([kd for _, kd in gains]),
            armature=model.dof_armature[dofs].copy(),
            frictionloss=model.dof_frictionloss[dofs].copy(),
            torque_limit=np.array([self._torque_limit(j) for j in per_dof]),
            dof_start=dof_start,
            dof_dim=len(axes),
        )

    def _limits(self, j: int) -> FloatArray:
        if not self._model.jnt_limited[j]:
            return np.array([-math.inf, math.inf])
        return np.array(self._model.jnt_range[j])

    def _gains(self, j: int, dof: int) -> tuple[float, float]:
        """The joint's own stiffness and damping; where one is zero, those of a position actuator on it."""
        model = self._model
        kp, kd = float(model.jnt_stiffness[j]), float(model.dof_damping[dof])
        for a in self._actuators(j):
            if model.actuator_biastype[a] != mujoco.mjtBias.mjBIAS_AFFINE:
                continue
            gear = float(np.linalg.norm(model.actuator_gear[a, :3]))
            kp = kp or -float(model.actuator_biasprm[a, 1]) * gear**2
            kd = -float(model.actuator_biasprm[a, 2]) * gear**2 or kd
        return kp, kd

    def _torque_limit(self, j: int) -> float:
        """Largest torque (N m): the joint's actuatorfrcrange, else what an actuator on it gives, else inf."""
        model = self._model
        if model.jnt_actfrclimited[j]:
            return float(np.abs(model.jnt_actfrcrange[j]).max())
        for a in self._actuators(j):
            gear = float(np.linalg.norm(model.actuator_gear[a, :3]))
            if model.actuator_forcelimited[a]:
                return float(np.abs(model.actuator_forcerange[a]).max()) * gear
            is_motor = model.actuator_biastype[a] == mujoco.mjtBias.mjBIAS_NONE
            if is_motor and model.actuator_ctrllimited[a]:
                gain = abs(float(model.actuator_gainprm[a, 0]))
                return float(np.abs(model.actuator_ctrlrange[a]).max()) * gain * gear
        return math.inf

    def _actuators(self, j: int) -> list[int]:
        model = self._model
        on_joint = (mujoco.mjtTrn.mjTRN_JOINT, mujoco.mjtTrn.mjTRN_JOINTINPARENT)
        drives = np.isin(model.actuator_trntype, on_joint) & (model.actuator_trnid[:, 0] == j)
        return [int(a) for a in np.flatnonzero(drives)]

    def _body_joints(self, b: int) -> list[int]:
        first = int(self._model.body_jntadr[b])
        return list(range(first, first + int(self._model.body_jntnum[b])))

    def _body_name(self, b: int) -> str:
        return self._model.body(b).name or f"body_{b - 1}"

    def _joint_name(self, j: int) -> str:
        return self._model.joint(j).name or f"{self._body_name(int(self._model.jnt_bodyid[j]))}_joint_{j}"

    def _error(self, b: int, joints: list[int], what: str) -> CharacterError:
        names = ", ".join(self._joint_name(j) for j in joints) or "none"
        return CharacterError(f"{self._path}: body {self._body_name(b)}, joints {names}: {what}")


def _common_name(names: list[str]) -> str:
    """What the hinges of one ball joint are called together: right_hip_x, right_hip_y, ... -> right_hip."""
    shared = zip(*names, strict=False)
    return "".join(letters[0] for letters in itertools.takewhile(lambda c: len(set(c)) == 1, shared)).rstrip("_-. ")
