"""What the Isaac Lab engine asks of PhysX, inside Kit, beyond Isaac Lab's own calls. Written from Isaac Lab's sources
and not run.
"""

import logging
from typing import Any

import torch
from torch import Tensor

from mimickit.engines.isaac_lab.api import Api
from mimickit.engines.isaac_lab.object import SimObject
from mimickit.engines.mujoco_scene import Scene, excluded_pairs

_log = logging.getLogger("mimickit.engines")


class PhysxPhysics:
    """Every physics step is a step of the simulation. A state is poses, positions and velocities: PhysX keeps what it
    remembers of contacts to itself, so that a restored state goes on nearly, and not exactly, as it did.
    """

    def __init__(self, api: Api, scene: Scene) -> None:
        self._api = api
        pairs = excluded_pairs(scene.model)
        counts = {
            "equality constraints": scene.model.neq, "contact pairs": scene.model.npair,
            "exclusions of the world": sum(first == 0 for first, _ in pairs),
        }  # fmt: skip
        for what, count in counts.items():
            if count:
                _log.warning("%s (%d) are not simulated with PhysX", what, count)

    def config(self) -> Any:
        """None: PhysX is Isaac Lab's default."""
        return None

    def prepare(self, sim: Any) -> None:
        """Before the scene is built."""
        self._sim = sim

    def bind(self, objects: list[SimObject]) -> None:
        """When the simulation is built."""
        self._objects = objects
        self._all = torch.arange(int(objects[0].asset.num_instances), device=self._api.device)

    def drive_forces(self, index: int) -> Tensor:
        """(num_envs, D) N m of an object's drives, as Isaac Lab works them out."""
        item = self._objects[index]
        return item.to_child(self._api.applied_effort(item.asset)[:, item.dofs])

    def check(self) -> None:
        """Nothing is known to be left out."""

    def is_sound(self) -> list[Tensor]:
        """What has to be numbers, and no great ones: (num_envs, ...) each."""
        return self.parts()

    def parts(self) -> list[Tensor]:
        """What the simulations go on from, (num_envs, ...) copies."""
        found: list[Tensor] = []
        for item in self._objects:
            found += [item.root_pose(), item.root_vel(), item.dof_pos(), item.dof_vel()]
        return found

    def restore(self, parts: list[Tensor]) -> None:
        """Put back what parts() gave, when all else is set."""
        for item, start in zip(self._objects, range(0, len(parts), 4), strict=True):
            pose, velocity, dof_pos, dof_vel = parts[start : start + 4]
            item.set_root_pose(self._all, pose)
            if item.obj.is_free:
                item.set_root_vel(self._all, velocity)
            item.set_dof_pos(self._all, dof_pos)
            item.set_dof_vel(self._all, dof_vel)

    def set_gravity(self, gravity: tuple[float, float, float]) -> None:
        """Gravity (m/s^2) of all environments."""
        self._api.set_gravity(self._sim, gravity)
