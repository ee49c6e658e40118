"""Isaac Lab's simulation of a scene. Isaac Lab has one in a process: the next can be made when this one is closed."""

import contextlib
import weakref
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from mimickit.engines.engine import ControlMode
from mimickit.engines.isaac_lab.api import Api
from mimickit.engines.isaac_lab.names import NEWTON
from mimickit.engines.isaac_lab.object import SimObject
from mimickit.engines.isaac_lab.scene import asset_name, scene_config, sensor_names
from mimickit.engines.mujoco_scene import Scene
from mimickit.engines.warp_lock import WARP_LOCK


class Physics(Protocol):
    """What differs between Newton and PhysX."""

    def config(self) -> Any:
        """Isaac Lab's configuration of the physics."""

    def prepare(self, sim: Any) -> None:
        """Before the scene is built."""

    def bind(self, objects: list[SimObject]) -> None:
        """When the simulation is built."""

    def drive_forces(self, index: int) -> Tensor:
        """(num_envs, D) N m of an object's drives in the last physics step."""

    def check(self) -> None:
        """Say what could not be simulated as it was asked; after every control step."""

    def is_sound(self) -> list[Tensor]:
        """What has to be numbers, and no great ones: (num_envs, ...) each."""

    def parts(self) -> list[Tensor]:
        """What the simulations go on from, (num_envs, ...) each."""

    def restore(self, parts: list[Tensor]) -> None:
        """Put back what parts() gave."""

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        """Gravity (m/s^2) of all environments."""


class IsaacLabSim:
    """num_envs environments; `objects` in the scene's order."""

    _present: "weakref.ref[IsaacLabSim] | None" = None
    _closed: bool

    def __init__(
        self, scene: Scene, api: Api, physics: Physics, *, num_envs: int, spacing: float, dt: float, mode: ControlMode
    ) -> None:
        """dt in s is what one advance() takes. Raises RuntimeError while there is another."""
        from isaaclab.scene import InteractiveScene
        from isaaclab.sim import SimulationContext

        other = None if IsaacLabSim._present is None else IsaacLabSim._present()
        if other is not None and not other._closed:
            raise RuntimeError("Isaac Lab has one simulation in a process: close() the engine that has it first")
        SimulationContext.clear_instance()  # of an engine that is forgotten
        self._closed, self._dt, self._is_new = True, dt, api.physics == NEWTON
        gravity = tuple(float(g) for g in scene.model.opt.gravity)
        self._sim = SimulationContext(api.simulation_config(dt=dt, gravity=gravity, physics=physics.config()))
        physics.prepare(self._sim)
        self._scene = InteractiveScene(scene_config(scene, api, num_envs=num_envs, spacing=spacing, mode=mode))
        with WARP_LOCK:
            self._sim.reset()
        origins = self._scene.env_origins.to(torch.float32)
        self.objects = [
            SimObject(
                api, obj, self._scene[asset_name(obj)], [self._scene[name] for name in sensor_names(api, obj)], origins
            )
            for obj in scene.objects
        ]
        physics.bind(self.objects)
        self._closed = False  # until here whoever comes next may clear what has failed
        IsaacLabSim._present = weakref.ref(self)

    @property
    def context(self) -> Any:
        """Isaac Lab's SimulationContext."""
        return self._sim

    @property
    def origins(self) -> np.ndarray:
        """(num_envs, 3) m: where the environments lie."""
        return np.asarray(self._scene.env_origins.cpu().numpy())

    def advance(self) -> None:
        """One step of the simulation with what was commanded."""
        self._scene.write_data_to_sim()
        with WARP_LOCK if self._is_new else contextlib.nullcontext():
            self._sim.step(render=False)
        self._is_new = False  # a first step is captured as a graph
        self._scene.update(self._dt)

    def close(self) -> None:
        """Free everything; may be called twice."""
        if self._closed:
            return
        self._closed = True
        from isaaclab.sim import SimulationContext

        self.objects = []
        del self._scene, self._sim
        SimulationContext.clear_instance()
