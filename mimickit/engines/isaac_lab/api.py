"""Isaac Lab's two lines behind one set of calls: 3.x, and 2.x, which differ in names, wrappers and quaternions.

With Newton physics 3.x needs no Kit (Isaac Sim): that is what runs in this project's tests. PhysX and the whole of 2.x
run inside Kit; their calls are written from Isaac Lab's sources and documentation and have not been run.
"""

import importlib.util
import warnings
from importlib import metadata
from typing import Any

import torch
from torch import Tensor

from mimickit.engines.isaac_lab.names import INSTALL, NEWTON, PHYSICS, PHYSX
from mimickit.util.keys import ConfigError, nearest

_LAUNCHED: list[Any] = []  # Kit, which lives as long as the process


class Api:
    """Isaac Lab 3.x. Quaternions are x y z w; what an asset's `data` holds are arrays with a torch view."""

    quat_order = (0, 1, 2, 3)  # takes Isaac Lab's to x y z w
    limit_name = "joint_effort_limit"

    def __init__(self, physics: str, device: str) -> None:
        """physics: newton or physx, which needs Kit: it is started here."""
        self.physics, self.device = physics, device
        if physics == PHYSX and not _LAUNCHED:
            self._launch()

    def _launch(self) -> None:
        """Start Kit, before anything else of Isaac Lab is imported. The RTX camera has to be asked for now or never."""
        from isaaclab.app import AppLauncher

        _LAUNCHED.append(AppLauncher({"headless": True, "enable_cameras": True, "device": self.device}))

    def simulation_config(self, *, dt: float, gravity: tuple[float, ...], physics: Any) -> Any:
        """A SimulationCfg; dt in s, physics: the configuration of the physics, None for the default's."""
        from isaaclab.sim import SimulationCfg

        return SimulationCfg(dt=dt, device=self.device, gravity=gravity, physics=physics)

    def actuator(self, names: list[str], *, effort_limit: dict[str, float], **options: Any) -> Any:
        """A drive inside the solver for joints of these names; effort_limit in N m."""
        from isaaclab.actuators import ImplicitActuatorCfg

        return ImplicitActuatorCfg(joint_names_expr=names, **{self.limit_name: effort_limit}, **options)

    # ------------------------------------------------------------------ values

    def tensor(self, values: Any) -> Tensor:
        """A torch view of an array of Isaac Lab's."""
        return values.torch

    def to_xyzw(self, pose: Tensor) -> Tensor:
        """A copy of poses (..., 7) with quaternions x y z w."""
        return pose[..., [0, 1, 2, *(3 + i for i in self.quat_order)]]

    def from_xyzw(self, pose: Tensor) -> Tensor:
        """A copy of poses (..., 7) with quaternions as Isaac Lab has them."""
        back = sorted(range(4), key=lambda i: self.quat_order[i])
        return pose[..., [0, 1, 2, *(3 + i for i in back)]]

    # ------------------------------------------------------------------ writing; ids (n,) int32

    def write_root_pose(self, asset: Any, pose: Tensor, ids: Tensor) -> None:
        """(n, 7) in the world, quaternions x y z w."""
        asset.write_root_pose_to_sim_index(root_pose=self.from_xyzw(pose), env_ids=ids)

    def write_root_velocity(self, asset: Any, velocity: Tensor, ids: Tensor) -> None:
        """(n, 6): of the root's origin, world frame, linear first."""
        asset.write_root_link_velocity_to_sim_index(root_velocity=velocity, env_ids=ids)

    def write_joint_position(self, asset: Any, position: Tensor, ids: Tensor) -> None:
        """(n, D) in the asset's own order."""
        asset.write_joint_position_to_sim_index(position=position, env_ids=ids)

    def write_joint_velocity(self, asset: Any, velocity: Tensor, ids: Tensor) -> None:
        """(n, D) in the asset's own order."""
        asset.write_joint_velocity_to_sim_index(velocity=velocity, env_ids=ids)

    def command(self, asset: Any, kind: str, values: Tensor) -> None:
        """Targets (num_envs, D) of the drives in the asset's own order; kind: position, velocity or effort."""
        getattr(asset.actuators.target_command, f"set_{kind}_index")(value=values)

    def sensed_bodies(self, sensor: Any) -> list[str]:
        """Names of the bodies of a contact sensor, in its order."""
        return list(sensor.sensor_names)

    def applied_effort(self, asset: Any) -> Tensor:
        """(num_envs, D) N m in the asset's own order, as Isaac Lab works it out."""
        return self.tensor(asset.actuators.applied_effort)

    def push(self, asset: Any, forces: Tensor) -> None:
        """Forces (num_envs, B, 3) N on the bodies' centres of mass, world frame, until the next write to the sim."""
        asset.instantaneous_wrench_composer.set_forces_and_torques_index(forces=forces, is_global=True)

    def set_gravity(self, sim: Any, gravity: tuple[float, float, float]) -> None:
        """Gravity (m/s^2) of all environments with PhysX."""
        sim.physics_manager.set_gravity(gravity)


class Api2(Api):
    """Isaac Lab 2.x: Kit and PhysX always; quaternions w x y z; plain tensors; positional writers."""

    quat_order = (1, 2, 3, 0)
    limit_name = "effort_limit_sim"

    def _launch(self) -> None:
        from isaaclab.app import AppLauncher

        _LAUNCHED.append(AppLauncher(headless=True, enable_cameras=True, device=self.device))

    def simulation_config(self, *, dt: float, gravity: tuple[float, ...], physics: Any) -> Any:
        from isaaclab.sim import SimulationCfg

        return SimulationCfg(dt=dt, device=self.device, gravity=gravity)

    def tensor(self, values: Any) -> Tensor:
        return values

    def write_root_pose(self, asset: Any, pose: Tensor, ids: Tensor) -> None:
        asset.write_root_pose_to_sim(self.from_xyzw(pose), env_ids=ids)

    def write_root_velocity(self, asset: Any, velocity: Tensor, ids: Tensor) -> None:
        asset.write_root_link_velocity_to_sim(velocity, env_ids=ids)

    def write_joint_position(self, asset: Any, position: Tensor, ids: Tensor) -> None:
        asset.write_joint_position_to_sim(position, env_ids=ids)

    def write_joint_velocity(self, asset: Any, velocity: Tensor, ids: Tensor) -> None:
        asset.write_joint_velocity_to_sim(velocity, env_ids=ids)

    def command(self, asset: Any, kind: str, values: Tensor) -> None:
        getattr(asset, f"set_joint_{kind}_target")(values)

    def sensed_bodies(self, sensor: Any) -> list[str]:
        return list(sensor.body_names)

    def applied_effort(self, asset: Any) -> Tensor:
        return asset.data.applied_torque

    def push(self, asset: Any, forces: Tensor) -> None:
        asset.set_external_force_and_torque(forces, torch.zeros_like(forces), is_global=True)

    def set_gravity(self, sim: Any, gravity: tuple[float, float, float]) -> None:
        import carb

        sim.physics_sim_view.set_gravity(carb.Float3(*gravity))


def open_api(physics: str, device: str, source: str) -> Api:
    """The installed Isaac Lab. Raises ConfigError where there is none, or none for this physics and device."""
    if physics not in PHYSICS:
        raise ConfigError(f"{source}: physics: found {physics!r}{nearest(physics, PHYSICS)}")
    try:
        version = metadata.version("isaaclab")
        import isaaclab  # noqa: F401
    except (metadata.PackageNotFoundError, ModuleNotFoundError) as error:
        raise _missing(getattr(error, "name", None) or "isaaclab") from None
    is_old = int(version.split(".")[0]) < 3
    if physics == "auto":
        physics = PHYSX if is_old else NEWTON
    if is_old and physics == NEWTON:
        raise ConfigError(f"{source}: physics: newton needs Isaac Lab 3 or newer, installed is {version}")
    if physics == NEWTON:
        _require_newton(device)
    elif importlib.util.find_spec("isaacsim") is None:
        raise ConfigError(f"{source}: physics: {physics} needs Isaac Sim, which is not installed; newton does without")
    return (Api2 if is_old else Api)(physics, device)


def _missing(name: str | None) -> ConfigError:
    return ConfigError(
        f"engine isaac_lab needs {name}, which is not installed: {INSTALL}, in a virtual environment of its own"
    )


def _require_newton(device: str) -> None:
    try:
        import warp as wp

        wp.config.log_level = wp.LOG_WARNING  # what the run says is ours
        import isaaclab_newton  # noqa: F401
        import newton  # noqa: F401
        import pxr  # noqa: F401
    except ModuleNotFoundError as error:
        raise _missing(error.name) from None
    from isaaclab.utils.timer import Timer

    Timer.enable_display_output = False
    for message in ("MuJoCo dependency version mismatch", "Newton shape color replacement"):
        warnings.filterwarnings("ignore", message=message)
    try:
        wp.get_device(device)
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"engine isaac_lab: device {device!r}: {error}") from None
