"""Builds one MuJoCo model out of the objects of an environment, and says where in it each object's state lies."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np

from mimickit.anim.char_file import attach, load_spec
from mimickit.anim.mjcf import CharacterInfo, JointInfo, JointKind, read_mjcf
from mimickit.engines.engine import ControlMode, ObjType
from mimickit.util.keys import ConfigError

GROUND = "ground"
_log = logging.getLogger("mimickit.engines")
_ALL_BITS = 0x3FFFFFFF
_CONTACT_FORCE = 1 << int(mujoco.mjtConDataField.mjCONDATA_FORCE)
_NET_FORCE = 3  # reduction of a contact sensor: the sum of all forces, in the world frame


@dataclass(frozen=True)
class ObjectSpec:
    """An object as it was asked for; the same in every environment but for start pose and colour."""

    obj_type: ObjType
    asset_file: Path
    name: str
    is_visual: bool
    enable_self_collisions: bool
    fix_root: bool
    disable_motors: bool

    @property
    def prefix(self) -> str:
        return f"{self.name}/"


@dataclass(frozen=True)
class ObjectLayout:
    """Where one object's state lies in the model's arrays."""

    spec: ObjectSpec
    info: CharacterInfo
    bodies: slice
    mocap_id: int  # of a fixed root, else -1
    root_qpos: int  # address of a free root's 7 numbers, else -1
    root_qvel: int  # address of a free root's 6 numbers, else -1
    dof_qvel: slice
    actuators: slice
    total_force: slice  # sensordata
    ground_force: slice  # sensordata
    ball_dofs: np.ndarray = field(repr=False)  # (balls, 3) dof indices
    ball_qpos: np.ndarray = field(repr=False)  # (balls, 4) qpos addresses, in x y z w order
    hinge_dofs: np.ndarray = field(repr=False)  # (hinges,)
    hinge_qpos: np.ndarray = field(repr=False)  # (hinges,)

    @property
    def is_free(self) -> bool:
        return self.root_qpos >= 0


@dataclass(frozen=True)
class Scene:
    """The compiled model of one environment and the layout of its objects."""

    model: mujoco.MjModel
    objects: tuple[ObjectLayout, ...]


class SceneBuilder:
    """Collects the objects of all environments, which must be the same but for start pose and colour."""

    def __init__(self, num_envs: int) -> None:
        self._num_envs = num_envs
        self._placed: list[int] = []  # number of objects created in each environment
        self.objects: list[ObjectSpec] = []
        self.start: list[list[tuple[np.ndarray, np.ndarray]]] = []  # [obj][env] position (3,), rotation (4,)
        self.colors: list[list[np.ndarray | None]] = []  # [obj][env]

    def create_env(self) -> int:
        """Open the next environment; returns its id."""
        if len(self._placed) == self._num_envs:
            raise ConfigError(f"create_env: all {self._num_envs} environments exist already")
        self._placed.append(0)
        return len(self._placed) - 1

    def add(
        self,
        env_id: int,
        spec: ObjectSpec,
        start_pos: Sequence[float] | np.ndarray | None,
        start_rot: Sequence[float] | np.ndarray | None,
        color: Sequence[float] | np.ndarray | None,
    ) -> int:
        """Put an object into an environment; returns its id. Raises ConfigError."""
        if not 0 <= env_id < len(self._placed):
            raise ConfigError(f"create_obj: env_id {env_id}: {len(self._placed)} environments exist")
        obj_id = self._register(env_id, spec)
        pos = np.zeros(3) if start_pos is None else np.asarray(start_pos, dtype=np.float64).reshape(3)
        rot = np.array([0.0, 0.0, 0.0, 1.0]) if start_rot is None else np.asarray(start_rot, np.float64).reshape(4)
        self.start[obj_id].append((pos, rot / np.linalg.norm(rot)))
        self.colors[obj_id].append(None if color is None else np.asarray(color, dtype=np.float64))
        return obj_id

    def _register(self, env_id: int, spec: ObjectSpec) -> int:
        obj_id = self._placed[env_id]
        self._placed[env_id] += 1
        if env_id == 0:
            if spec.name in (other.name for other in self.objects):
                raise ConfigError(f"create_obj: an object named {spec.name!r} exists already")
            self.objects.append(spec)
            self.start.append([])
            self.colors.append([])
        elif obj_id >= len(self.objects) or self.objects[obj_id] != spec:
            expected = self.objects[obj_id] if obj_id < len(self.objects) else "no further object"
            raise ConfigError(
                f"create_obj: environment {env_id}, object {obj_id}: expected what environment 0 has ({expected}), "
                f"found {spec}"
            )
        return obj_id

    def build(self, control_mode: ControlMode, timestep: float) -> Scene:
        """The compiled scene. Raises ConfigError where an environment or an object is missing."""
        if len(self._placed) != self._num_envs or len(set(self._placed)) != 1 or not self.objects:
            raise ConfigError(
                f"initialize_sim: expected {self._num_envs} environments with the same objects, found "
                f"{len(self._placed)} with {sorted(set(self._placed))} objects"
            )
        return build_scene(self.objects, control_mode, timestep)


def build_scene(objects: list[ObjectSpec], control_mode: ControlMode, timestep: float) -> Scene:
    """Compile the objects and a ground plane into one model with drives and contact sensors; timestep in s."""
    spec = mujoco.MjSpec()
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(
        name=GROUND, type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=_ALL_BITS, conaffinity=_ALL_BITS
    )
    infos = [_attach_object(spec, obj, index) for index, obj in enumerate(objects)]
    for obj, info in zip(objects, infos, strict=True):
        _add_drives(spec, obj, info, control_mode)
        _add_contact_sensors(spec, obj, info)
    try:
        model = spec.compile()
    except ValueError as error:
        files = ", ".join(str(obj.asset_file) for obj in objects)
        raise ConfigError(f"{files}: MuJoCo can't compile the scene: {error}") from error
    layouts = tuple(_layout(model, obj, info) for obj, info in zip(objects, infos, strict=True))
    return Scene(model, layouts)


def _attach_object(scene: mujoco.MjSpec, obj: ObjectSpec, index: int) -> CharacterInfo:
    """Put a copy of the object's file under the world, its joints replaced by those the engine drives."""
    info = read_mjcf(obj.asset_file)
    child = load_spec(obj.asset_file)
    _leave_out(child, info, obj)
    root = child.body(info.bodies[0].name)
    for old in list(root.joints):
        child.delete(old)
    for joint in info.joints:
        _replace_joint(child, child.body(info.bodies[joint.body].name), joint, is_visual=obj.is_visual)
    _set_collisions(child, info, obj, index)
    body = attach(scene, child, root, obj.prefix)
    if obj.fix_root:
        body.mocap = True
    else:
        body.add_freejoint(name=obj.prefix + "root")
    return info


def _leave_out(child: mujoco.MjSpec, info: CharacterInfo, obj: ObjectSpec) -> None:
    """Take out what isn't simulated, and say so where it matters."""
    if child.tendons:
        _log.warning("%s: tendons (%d) are not simulated", obj.asset_file, len(child.tendons))
    # a visual object goes wherever it is put
    held = [*child.equalities, *child.pairs] if obj.is_visual else _uncoupled(child, info)
    for element in [*child.actuators, *child.sensors, *child.keys, *held, *child.tendons]:
        child.delete(element)


def _uncoupled(child: mujoco.MjSpec, info: CharacterInfo) -> list[mujoco.MjsEquality]:
    """Equality constraints of tendons, and of joints that are not there any more."""
    scalar = {joint.name for joint in info.joints if joint.kind is JointKind.HINGE}
    found = [row for row in child.equalities if row.type == mujoco.mjtEq.mjEQ_TENDON]
    for row in child.equalities:
        lost = [name for name in (row.name1, row.name2) if name and name not in scalar]
        if row.type == mujoco.mjtEq.mjEQ_JOINT and lost:
            found.append(row)
            _log.warning("%s: the equality constraint of joint %r is not simulated: %s is no hinge by itself here",
                         info.path, row.name1, lost[0])  # fmt: skip
    return found


def _replace_joint(child: mujoco.MjSpec, body: mujoco.MjsBody, joint: JointInfo, *, is_visual: bool) -> None:
    """One ball joint in place of three hinges; the file's gains go to the drives, so the passive ones become zero."""
    if joint.kind is JointKind.FIXED:
        return
    limits, armature = joint.limits, float(np.max(joint.armature))
    frictionloss = float(np.max(joint.frictionloss))
    for old in list(body.joints):
        child.delete(old)
    new = body.add_joint(name=joint.name, pos=joint.pos)
    # whatever the new joint inherits from the file's default class is overwritten: a ball joint left `limited` by it,
    # with no range of its own, would be locked
    new.limited = mujoco.mjtLimited.mjLIMITED_FALSE
    new.actfrclimited = mujoco.mjtLimited.mjLIMITED_FALSE
    if joint.kind is JointKind.BALL:
        new.type = mujoco.mjtJoint.mjJNT_BALL
    else:
        new.type = mujoco.mjtJoint.mjJNT_HINGE
        new.axis = joint.axes[0]
        if np.all(np.isfinite(limits)) and not is_visual:  # a visual object goes wherever it is put
            new.limited = mujoco.mjtLimited.mjLIMITED_TRUE
            unit = np.rad2deg(1.0) if child.compiler.degree else 1.0
            new.range = limits[0] * unit
    new.stiffness = np.zeros(3)
    new.damping = np.zeros(3)
    new.ref = new.springref = 0.0
    new.armature = armature
    new.frictionloss = 0.0 if is_visual else frictionloss


def _set_collisions(child: mujoco.MjSpec, info: CharacterInfo, obj: ObjectSpec, index: int) -> None:
    for body_info in info.bodies:
        body = child.body(body_info.name)
        if obj.is_visual:
            body.gravcomp = 1.0
        for geom in body.geoms:
            if obj.is_visual:
                geom.contype = geom.conaffinity = 0
            elif not obj.enable_self_collisions and (geom.contype or geom.conaffinity):
                # a bit of its own, which meets every bit but itself
                bit = 1 << (index % 30)
                geom.contype, geom.conaffinity = bit, _ALL_BITS & ~bit


def _add_drives(scene: mujoco.MjSpec, obj: ObjectSpec, info: CharacterInfo, mode: ControlMode) -> None:
    """One actuator a dof, in dof order. A ball joint's three have gears along x, y, z: their lengths are its
    exponential map. ctrlrange and forcerange are set here and never inherited.
    """
    if mode is ControlMode.NONE or obj.disable_motors or obj.is_visual:
        return
    for joint in info.joints:
        for axis in range(joint.dof_dim):
            actuator = scene.add_actuator(name=f"{obj.prefix}{joint.name}:{axis}")
            actuator.trntype = mujoco.mjtTrn.mjTRN_JOINT
            actuator.target = obj.prefix + joint.name
            actuator.gear = np.eye(6)[axis]
            actuator.ctrllimited = mujoco.mjtLimited.mjLIMITED_FALSE
            limit = float(joint.torque_limit[axis])
            actuator.forcelimited = int(np.isfinite(limit))
            actuator.forcerange = [-limit, limit] if np.isfinite(limit) else [0.0, 0.0]
            kp, kd = float(joint.stiffness[axis]), float(joint.damping[axis])
            gain, bias = {
                ControlMode.POS: (kp, (0.0, -kp, -kd)),
                ControlMode.VEL: (kd, (0.0, 0.0, -kd)),
            }.get(mode, (1.0, (0.0, 0.0, 0.0)))
            actuator.gaintype = mujoco.mjtGain.mjGAIN_FIXED
            actuator.biastype = mujoco.mjtBias.mjBIAS_AFFINE
            actuator.gainprm[0] = gain
            actuator.biasprm[:3] = bias


def _add_contact_sensors(scene: mujoco.MjSpec, obj: ObjectSpec, info: CharacterInfo) -> None:
    if obj.is_visual:
        return
    for kind, other in (("total", ""), ("ground", GROUND)):
        for body in info.bodies:
            sensor = scene.add_sensor(name=f"{obj.prefix}{body.name}:{kind}")
            sensor.type = mujoco.mjtSensor.mjSENS_CONTACT
            sensor.objtype, sensor.objname = mujoco.mjtObj.mjOBJ_BODY, obj.prefix + body.name
            if other:
                sensor.reftype, sensor.refname = mujoco.mjtObj.mjOBJ_GEOM, other
            sensor.intprm[:3] = [_CONTACT_FORCE, _NET_FORCE, 1]


def _layout(model: mujoco.MjModel, obj: ObjectSpec, info: CharacterInfo) -> ObjectLayout:
    first = model.body(obj.prefix + info.bodies[0].name).id
    root = model.body(first)
    joint_ids = [model.joint(obj.prefix + joint.name).id for joint in info.joints if joint.dof_dim]
    joints = [joint for joint in info.joints if joint.dof_dim]
    free_dofs = 0 if obj.fix_root else 6
    dof_start = int(model.body_dofadr[first]) + free_dofs if free_dofs else _first_dof(model, joint_ids)
    balls = [(j, i) for j, i in zip(joints, joint_ids, strict=True) if j.kind is JointKind.BALL]
    hinges = [(j, i) for j, i in zip(joints, joint_ids, strict=True) if j.kind is JointKind.HINGE]
    wxyz_to_xyzw = np.array([1, 2, 3, 0])
    return ObjectLayout(
        spec=obj,
        info=info,
        bodies=slice(first, first + len(info.bodies)),
        mocap_id=int(root.mocapid[0]),
        root_qpos=-1 if obj.fix_root else int(model.jnt_qposadr[model.body_jntadr[first]]),
        root_qvel=-1 if obj.fix_root else int(model.body_dofadr[first]),
        dof_qvel=slice(dof_start, dof_start + info.num_dofs),
        actuators=_named_slice(model, mujoco.mjtObj.mjOBJ_ACTUATOR, obj.prefix),
        total_force=_sensor_slice(model, obj, info, "total"),
        ground_force=_sensor_slice(model, obj, info, "ground"),
        ball_dofs=np.array([np.arange(3) + j.dof_start for j, _ in balls], dtype=np.int64).reshape(-1, 3),
        ball_qpos=np.array([model.jnt_qposadr[i] + wxyz_to_xyzw for _, i in balls], dtype=np.int64).reshape(-1, 4),
        hinge_dofs=np.array([j.dof_start for j, _ in hinges], dtype=np.int64),
        hinge_qpos=np.array([model.jnt_qposadr[i] for _, i in hinges], dtype=np.int64),
    )


def _first_dof(model: mujoco.MjModel, joint_ids: list[int]) -> int:
    return int(model.jnt_dofadr[joint_ids[0]]) if joint_ids else 0


def _named_slice(model: mujoco.MjModel, kind: mujoco.mjtObj, prefix: str) -> slice:
    ids = [i for i in range(model.nu) if mujoco.mj_id2name(model, kind, i).startswith(prefix)]
    return slice(ids[0], ids[-1] + 1) if ids else slice(0, 0)


def _sensor_slice(model: mujoco.MjModel, obj: ObjectSpec, info: CharacterInfo, kind: str) -> slice:
    if obj.is_visual:
        return slice(0, 0)
    start = int(model.sensor(f"{obj.prefix}{info.bodies[0].name}:{kind}").adr[0])
    return slice(start, start + 3 * len(info.bodies))


def excluded_pairs(mj: mujoco.MjModel) -> list[tuple[int, int]]:
    """Pairs of bodies that never touch, as the files say, by MuJoCo's ids."""
    return [(int(signature) >> 16, int(signature) & 0xFFFF) for signature in mj.exclude_signature]
