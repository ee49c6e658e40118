"""What engines share that simulate the characters' files: the scene, what is known of its objects, who is on film."""

import abc
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mimickit.engines.engine import Engine, ObjType
from mimickit.engines.mujoco_scene import ObjectLayout, ObjectSpec, Scene, SceneBuilder
from mimickit.util.keys import ConfigError, as_int, nearest
from mimickit.video.snapshot import ActorSpec

_log = logging.getLogger("mimickit.engines")


class SceneEngine(Engine):
    """An engine whose environments are all the same Scene, compiled from the files of its objects.

    A subclass simulates it: _build_sim(), _command() and what is left of the contract.
    """

    def __init__(self, config: Mapping[str, Any], *, num_envs: int, **options: Any) -> None:
        super().__init__(config, num_envs=num_envs, **options)
        self._builder = SceneBuilder(num_envs)
        self._scene: Scene | None = None
        self._objs: tuple[ObjectLayout, ...] = ()
        self._failed = torch.zeros(num_envs, dtype=torch.bool, device=self._device)
        self._told_of_failure = False

    def _read_max_contacts(self, config: Mapping[str, Any]) -> int:
        """Room for contacts in one environment, 0 for an estimate: a key of engines that allot it beforehand."""
        found = as_int(config.get("max_contacts", 0), "max_contacts", self._source)
        if found < 0:
            raise ConfigError(f"{self._source}: max_contacts: expected 0 (an estimate) or more, found {found}")
        return found

    # ------------------------------------------------------------------ building

    def create_env(self) -> int:
        return self._builder.create_env()

    def create_obj(
        self,
        env_id: int,
        obj_type: ObjType,
        asset_file: str | Path,
        name: str,
        *,
        is_visual: bool = False,
        enable_self_collisions: bool = True,
        fix_root: bool = False,
        start_pos: Sequence[float] | np.ndarray | None = None,
        start_rot: Sequence[float] | np.ndarray | None = None,
        color: Sequence[float] | np.ndarray | None = None,
        disable_motors: bool = False,
    ) -> int:
        if self._scene is not None:
            raise RuntimeError("create_obj: the simulation is initialized; create all objects before initialize_sim()")
        spec = ObjectSpec(
            obj_type, Path(asset_file), name, is_visual, enable_self_collisions, fix_root, disable_motors
        )
        return self._builder.add(env_id, spec, start_pos, start_rot, color)

    def initialize_sim(self) -> None:
        if self._scene is not None:
            raise RuntimeError("initialize_sim: called twice")
        scene = self._builder.build(self._control_mode, self.get_sim_timestep())
        self._objs = scene.objects
        self._check_video()
        # of every object (D,): stiffness (N m/rad), damping (N m s/rad)
        self._pd_gains = [
            (self._to_tensor(self._per_dof(i, "stiffness")), self._to_tensor(self._per_dof(i, "damping")))
            for i in range(len(self._objs))
        ]
        self._build_sim(scene)
        self._scene = scene
        self.reset_envs(None)

    def _check_video(self) -> None:
        """Now rather than when filming begins: that may be hours away."""
        name, names = self._video.body, self.get_obj_body_names(0)
        if self._video.enabled and name is not None and name not in names:
            raise ConfigError(f"video: body: {self._objs[0].spec.asset_file}: found {name!r}{nearest(name, names)}")

    @abc.abstractmethod
    def _build_sim(self, scene: Scene) -> None:
        """Make the simulations; all of them are reset afterwards."""

    # ------------------------------------------------------------------ stepping

    def set_cmd(self, obj_id: int, cmd: Tensor) -> None:
        obj = self._objs[obj_id]
        expected = (self._num_envs, obj.info.num_dofs)
        if tuple(cmd.shape) != expected:
            raise ValueError(f"set_cmd: object {obj.spec.name!r}: expected shape {expected}, found {tuple(cmd.shape)}")
        if obj.actuators.stop == obj.actuators.start:
            raise ValueError(f"set_cmd: object {obj.spec.name!r} has no drives (control mode "
                             f"{self._control_mode.value}, disable_motors or is_visual)")  # fmt: skip
        self._command(obj_id, cmd.detach())

    @abc.abstractmethod
    def _command(self, obj_id: int, cmd: Tensor) -> None:
        """Hand a command (num_envs, D) that fits to an object with drives."""

    def _tell_of_failure(self, env_ids: Sequence[int]) -> None:
        """Simulations that diverged; only the first are told of."""
        if not self._told_of_failure:
            self._told_of_failure = True
            _log.warning("%d of %d simulations diverged, the first of them %d, and were put back to their start "
                         "(said once; get_sim_failed() tells of each step)",
                         len(env_ids), self._num_envs, env_ids[0])  # fmt: skip

    def _restart(self, failed: Tensor) -> None:
        """Put simulations back (num_envs,) bool that diverged; the others have gone on undisturbed."""
        self._failed = failed
        if bool(failed.any()):
            ids = failed.nonzero()[:, 0]
            self._tell_of_failure(ids.tolist())
            self.reset_envs(ids)

    def get_sim_failed(self) -> Tensor:
        return self._failed.clone()

    # ------------------------------------------------------------------ facts

    def get_objs_per_env(self) -> int:
        return len(self._builder.objects)

    def get_obj_type(self, obj_id: int) -> ObjType:
        return self._builder.objects[obj_id].obj_type

    def get_obj_num_bodies(self, obj_id: int) -> int:
        return len(self._objs[obj_id].info.bodies)

    def get_obj_num_dofs(self, obj_id: int) -> int:
        return self._objs[obj_id].info.num_dofs

    def get_obj_body_names(self, obj_id: int) -> list[str]:
        return [body.name for body in self._objs[obj_id].info.bodies]

    def find_obj_body_id(self, obj_id: int, body_name: str) -> int:
        names = self.get_obj_body_names(obj_id)
        if body_name not in names:
            file = self._builder.objects[obj_id].asset_file
            raise ConfigError(f"{file}: no body {body_name!r}{nearest(body_name, names)}")
        return names.index(body_name)

    def get_obj_dof_limits(self, obj_id: int) -> tuple[Tensor, Tensor]:
        limits = self._per_dof(obj_id, "limits").reshape(-1, 2)
        return self._to_tensor(limits[:, 0]), self._to_tensor(limits[:, 1])

    def get_obj_torque_limits(self, obj_id: int) -> Tensor:
        return self._to_tensor(self._per_dof(obj_id, "torque_limit"))

    def _per_dof(self, obj_id: int, name: str) -> np.ndarray:
        """What the joints' field `name` says of every dof, as one array."""
        joints = self._objs[obj_id].info.joints
        return np.concatenate([np.zeros(0), *(np.ravel(getattr(joint, name)) for joint in joints if joint.dof_dim)])

    # ------------------------------------------------------------------ checks

    def _free(self, obj_id: int, what: str) -> ObjectLayout:
        """The object, for a method `what` that has no meaning for a fixed root. Raises ValueError."""
        obj = self._objs[obj_id]
        if not obj.is_free:
            raise ValueError(f"{what}: the root of {obj.spec.name!r} is fixed and has no velocity")
        return obj

    def _check_body(self, obj_id: int, body_id: int, what: str) -> None:
        obj = self._objs[obj_id]
        if not 0 <= body_id < len(obj.info.bodies):
            raise ValueError(f"{what}: body_id {body_id}: {obj.spec.name!r} has {len(obj.info.bodies)} bodies")

    def _check_state(self, state: Tensor, expected: tuple[int, ...]) -> None:
        if tuple(state.shape) != expected:
            raise ConfigError(f"set_state: expected {tuple(expected)}, found {tuple(state.shape)}: "
                              "a state of another engine, scene or number of environments (a policy alone "
                              "goes anywhere: --model_file)")  # fmt: skip

    def _ids(self, env_ids: Tensor | None) -> Tensor:
        """The environments that are meant, None being all."""
        if env_ids is None:
            return torch.arange(self._num_envs, device=self._device)
        return torch.as_tensor(env_ids, device=self._device)

    def _none(self) -> Tensor:
        """(num_envs, 3): the velocity of a root that is fixed."""
        return torch.zeros(self._num_envs, 3, device=self._device)

    # ------------------------------------------------------------------ filming

    def stage_actors(self, env_id: int) -> list[ActorSpec]:
        if self._scene is None:
            raise RuntimeError("call initialize_sim() before a recording")
        return [
            ActorSpec(name=obj.name, asset_file=obj.asset_file, color=self._color(obj_id, env_id))
            for obj_id, obj in enumerate(self._builder.objects)
        ]

    def _color(self, obj_id: int, env_id: int) -> list[float] | None:
        color = self._builder.colors[obj_id][env_id]
        return None if color is None else [float(c) for c in color]
