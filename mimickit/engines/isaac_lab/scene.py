"""The configuration of Isaac Lab's scene: a ground, and for every object an asset and a contact sensor."""

from typing import Any

import numpy as np

from mimickit.engines.engine import ControlMode
from mimickit.engines.isaac_lab.api import Api
from mimickit.engines.isaac_lab.names import NEWTON
from mimickit.engines.isaac_lab.object import dof_names
from mimickit.engines.isaac_lab.usd import usd_name, usd_names, usd_of, usd_of_ground
from mimickit.engines.mujoco_scene import ObjectLayout, Scene

GROUND_PATH = "/World/ground"


def asset_name(obj: ObjectLayout) -> str:
    """What the object is called in Isaac Lab's scene."""
    return f"obj_{usd_name(obj.spec.name)}"


def sensor_names(api: Api, obj: ObjectLayout) -> list[str]:
    """What its contact sensors are called: one with Newton, one a body with PhysX, which tells the ground from the rest
    for single bodies only.
    """
    if obj.spec.is_visual:
        return []
    bodies = [".*"] if api.physics == NEWTON else usd_names(body.name for body in obj.info.bodies)
    return [f"{asset_name(obj)}_contacts_{number}" for number, _ in enumerate(bodies)]


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
            for name, sensor in zip(sensor_names(api, obj), _contacts(api, obj), strict=True):
                setattr(config, name, sensor)
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
        effort_limit=each(_per_dof(obj, "torque_limit")),
    )


def _per_dof(obj: ObjectLayout, name: str) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.ravel(getattr(j, name)) for j in obj.info.joints if j.dof_dim)])


def _largest(obj: ObjectLayout, name: str) -> np.ndarray:
    """(D,): the three dofs of a ball joint have one value, as in mujoco_scene."""
    found = [np.full(j.dof_dim, np.max(getattr(j, name))) for j in obj.info.joints if j.dof_dim]
    return np.concatenate([np.zeros(0), *found])


def _contacts(api: Api, obj: ObjectLayout) -> list[Any]:
    path, ground = f"{{ENV_REGEX_NS}}/{asset_name(obj)}", [f"{GROUND_PATH}/plane"]
    if api.physics == NEWTON:
        from isaaclab_newton.sensors import ContactSensorCfg as NewtonContactSensorCfg

        return [NewtonContactSensorCfg(prim_path=f"{path}/.*", filter_shape_prim_expr=ground)]
    from isaaclab.sensors import ContactSensorCfg

    bodies = usd_names(body.name for body in obj.info.bodies)
    return [ContactSensorCfg(prim_path=f"{path}/{body}", filter_prim_paths_expr=ground) for body in bodies]
