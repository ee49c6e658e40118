"""The configuration of Isaac Lab's scene: a ground, and for every object an asset and a contact sensor."""

from typing import Any

import numpy as np

from mimickit.engines.engine import ControlMode
from mimickit.engines.isaac_lab_api import Api
from mimickit.engines.isaac_lab_names import NEWTON
from mimickit.engines.isaac_lab_object import dof_names
from mimickit.engines.isaac_lab_usd import usd_name, usd_of, usd_of_ground
from mimickit.engines.mujoco_scene import ObjectLayout, Scene

GROUND_PATH = "/World/ground"


def asset_name(obj: ObjectLayout) -> str:
    """What the object is called in Isaac Lab's scene."""
    return f"obj_{usd_name(obj.spec.name)}"


def sensor_name(obj: ObjectLayout) -> str:
    """What its contact sensor is called."""
    return f"{asset_name(obj)}_contacts"


def scene_config(scene: Scene, api: Api, *, num_envs: int, spacing: float, mode: ControlMode) -> Any:
    """An InteractiveSceneCfg; spacing in m between the environments' origins."""
    from isaaclab import sim as sim_utils
    from isaaclab.assets import AssetBaseCfg
    from isaaclab.scene import InteractiveSceneCfg

    config: Any = InteractiveSceneCfg(num_envs=num_envs, env_spacing=spacing)
    config.ground = AssetBaseCfg(
        prim_path=GROUND_PATH, spawn=sim_utils.UsdFileCfg(usd_path=str(usd_of_ground(scene.model)))
    )
    for obj in scene.objects:
        setattr(config, asset_name(obj), _asset(scene, api, obj, mode))
        if not obj.spec.is_visual:
            setattr(config, sensor_name(obj), _contacts(api, obj))
    return config


def _asset(scene: Scene, api: Api, obj: ObjectLayout, mode: ControlMode) -> Any:
    from isaaclab import sim as sim_utils
    from isaaclab.assets import ArticulationCfg, RigidObjectCfg

    path = usd_of(scene.model, obj)
    place = {
        "prim_path": f"{{ENV_REGEX_NS}}/{asset_name(obj)}",
        "spawn": sim_utils.UsdFileCfg(usd_path=str(path), activate_contact_sensors=not obj.spec.is_visual),
    }
    if len(obj.info.bodies) == 1:
        return RigidObjectCfg(**place)
    limits = _per_dof(obj, "limits").reshape(-1, 2)
    start = dict(zip(dof_names(obj), np.clip(0.0, limits[:, 0], limits[:, 1]).tolist(), strict=True))
    actuators = {"drives": _drives(api, obj, mode)} if obj.info.num_dofs else {}
    return ArticulationCfg(**place, init_state=ArticulationCfg.InitialStateCfg(joint_pos=start), actuators=actuators)


def _drives(api: Api, obj: ObjectLayout, mode: ControlMode) -> Any:
    """Gains in the solver for position and velocity control; torques come from outside otherwise. Armature and
    friction belong to the joints, whichever.
    """
    names = dof_names(obj)

    def each(values: np.ndarray) -> dict[str, float]:
        return dict(zip(names, (float(value) for value in values), strict=True))

    has_drives = obj.actuators.stop > obj.actuators.start
    kp, kd = _per_dof(obj, "stiffness"), _per_dof(obj, "damping")
    if not (has_drives and mode is ControlMode.POS):
        kp = np.zeros_like(kp)
    if not (has_drives and mode in (ControlMode.POS, ControlMode.VEL)):
        kd = np.zeros_like(kd)
    armature, friction = (_largest(obj, name) for name in ("armature", "frictionloss"))
    return api.actuator(
        names,
        stiffness=each(kp),
        damping=each(kd),
        armature=each(armature),
        friction=each(np.zeros_like(friction) if obj.spec.is_visual else friction),
        effort_limit_sim=each(_per_dof(obj, "torque_limit")),
    )


def _per_dof(obj: ObjectLayout, name: str) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.ravel(getattr(j, name)) for j in obj.info.joints if j.dof_dim)])


def _largest(obj: ObjectLayout, name: str) -> np.ndarray:
    """(D,): the three dofs of a ball joint have one value, as in mujoco_scene."""
    found = [np.full(j.dof_dim, np.max(getattr(j, name))) for j in obj.info.joints if j.dof_dim]
    return np.concatenate([np.zeros(0), *found])


def _contacts(api: Api, obj: ObjectLayout) -> Any:
    from isaaclab.sensors import ContactSensorCfg

    options: dict[str, Any] = {"prim_path": f"{{ENV_REGEX_NS}}/{asset_name(obj)}/.*"}
    if api.physics == NEWTON:
        from isaaclab_newton.sensors import ContactSensorCfg as NewtonContactSensorCfg

        return NewtonContactSensorCfg(filter_shape_prim_expr=[f"{GROUND_PATH}/plane"], **options)
    return ContactSensorCfg(filter_prim_paths_expr=[f"{GROUND_PATH}/plane"], **options)
