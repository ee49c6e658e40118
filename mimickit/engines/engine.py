"""The contract that every physics engine fulfils, and the part of it that is the same for all: stepping and filming."""

import abc
import enum
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mimickit.engines.video_recorder import VideoRecorder
from mimickit.util.keys import ConfigError, as_float, as_int, nearest, reject_unknown
from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig
from mimickit.video.snapshot import ActorSpec


class ControlMode(enum.Enum):
    """What set_cmd commands: targets of a PD drive, or torques."""

    NONE = "none"
    POS = "pos"  # dof position targets (rad), PD inside the engine's own solver
    VEL = "vel"  # dof velocity targets (rad/s)
    TORQUE = "torque"  # torques (N m), clipped at the joints' limits
    PD_EXPLICIT = "pd_explicit"  # dof position targets, PD torques computed before every physics step


class ObjType(enum.Enum):
    """What an object is made of."""

    RIGID = "rigid"
    ARTICULATED = "articulated"


ENGINE_KEYS = (
    "engine_name",
    "control_mode",
    "control_freq",
    "sim_freq",
    "env_spacing",
    "ground_contact_height",
)


class Engine(abc.ABC):
    """Simulates num_envs copies of a scene side by side and films itself.

    All tensors are float32 on ``device`` with the environments first: (num_envs, ...). Units are SI; quaternions are
    x y z w; bodies and dofs are in the depth-first order of the character file; positions are relative to the origin
    of their environment. A ball joint (three hinges on one body) has three dofs, an exponential map in radians, and its
    dof velocity is the angular velocity in the child body's frame (rad/s).

    Life: create_env() and create_obj() for every environment, initialize_sim() once, then set_cmd() and step().
    """

    EXTRA_KEYS: tuple[str, ...] = ()  # YAML keys of one backend alone

    def __init__(
        self,
        config: Mapping[str, Any],
        *,
        num_envs: int,
        device: str = "cpu",
        video: VideoConfig | None = None,
        seed: int = 0,
        config_source: str = "engine config",
    ) -> None:
        if num_envs < 1:
            raise ConfigError(f"num_envs: expected at least 1, found {num_envs}")
        known = (*ENGINE_KEYS, *self.EXTRA_KEYS)
        reject_unknown(config, known, config_source)
        self._source = config_source
        self._num_envs = num_envs
        self._device = device
        self._seed = seed
        self._video = video if video is not None else VideoConfig()
        if self._video.enabled and self._video.env >= num_envs:
            raise ConfigError(
                f"video: env: expected 0 to {num_envs - 1} ({num_envs} environments), found {self._video.env}"
            )
        self._control_mode = self._read_control_mode(config)
        self._control_freq = as_float(config.get("control_freq", 10), "control_freq", config_source)
        self._sim_freq = as_float(config.get("sim_freq", 60), "sim_freq", config_source)
        self._sim_steps = self._read_sim_steps()
        self._recorder: VideoRecorder | None = None
        self._closed = False

    def _read_control_mode(self, config: Mapping[str, Any]) -> ControlMode:
        name = str(config.get("control_mode", "none"))
        modes = {mode.value: mode for mode in ControlMode}
        if name not in modes:
            raise ConfigError(f"{self._source}: control_mode: found {name!r}{nearest(name, modes)}")
        return modes[name]

    def _read_sim_steps(self) -> int:
        if self._control_freq <= 0.0 or self._sim_freq <= 0.0:
            raise ConfigError(f"{self._source}: control_freq and sim_freq: expected numbers above 0 (Hz)")
        ratio = self._sim_freq / self._control_freq
        steps = as_int(round(ratio), "sim_freq", self._source)
        if steps < 1 or abs(ratio - steps) > 1e-6:
            raise ConfigError(
                f"{self._source}: sim_freq: expected a whole multiple of control_freq ({self._control_freq:g} Hz), "
                f"found {self._sim_freq:g} Hz"
            )
        return steps

    # ------------------------------------------------------------------ building

    @abc.abstractmethod
    def get_name(self) -> str:
        """Name of the backend, as in engine_name."""

    @abc.abstractmethod
    def create_env(self) -> int:
        """Open the next environment; returns its id."""

    @abc.abstractmethod
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
        """Put an object into an environment; returns its id, the same in every environment.

        Args:
            env_id: the environment, from create_env().
            obj_type: articulated (joints with drives) or rigid.
            asset_file: the character file (MJCF, URDF, USD or a description), or robot:NAME.
            name: unique within the environment.
            is_visual: seen, but touches nothing and falls nowhere.
            enable_self_collisions: whether its own bodies collide.
            fix_root: the root stands where it is put.
            start_pos: (3,) m, default origin. start_rot: (4,) x y z w, default identity.
            color: (3,) or (4,) in 0..1, default the file's own.
            disable_motors: no drives.
        """

    @abc.abstractmethod
    def initialize_sim(self) -> None:
        """Build the simulation from the environments created; called once, before anything is stepped or read."""

    # ------------------------------------------------------------------ stepping

    @abc.abstractmethod
    def set_cmd(self, obj_id: int, cmd: Tensor) -> None:
        """Command (num_envs, num_dofs) that holds until the next one; its meaning is the control mode's."""

    def step(self) -> None:
        """Advance all environments by one control step, and let the recorder see the state before and after. Raises
        RuntimeError after close().
        """
        if self._closed:
            raise RuntimeError("step: the engine is closed")
        if self._recorder is not None and self._recorder.is_recording:
            self._recorder.before_step()
            self._simulate()
            self._recorder.after_step()
        else:
            self._simulate()

    @abc.abstractmethod
    def _simulate(self) -> None:
        """Advance the physics by one control step."""

    @abc.abstractmethod
    def get_sim_failed(self) -> Tensor:
        """(num_envs,) bool: simulations that diverged in the last step; they were put back to their start state."""

    # ------------------------------------------------------------------ facts

    def get_num_envs(self) -> int:
        """Number of environments."""
        return self._num_envs

    def get_device(self) -> str:
        """Device of all tensors."""
        return self._device

    def get_timestep(self) -> float:
        """Length of a control step (s)."""
        return 1.0 / self._control_freq

    def get_sim_timestep(self) -> float:
        """Length of a physics step (s)."""
        return 1.0 / self._sim_freq

    def get_control_mode(self) -> ControlMode:
        """What set_cmd commands."""
        return self._control_mode

    @abc.abstractmethod
    def get_sim_time(self, env_id: int) -> float:
        """Simulated time of an environment since it was last reset as a whole (s)."""

    @abc.abstractmethod
    def get_objs_per_env(self) -> int:
        """Number of objects in each environment."""

    @abc.abstractmethod
    def get_obj_type(self, obj_id: int) -> ObjType:
        """What the object is."""

    @abc.abstractmethod
    def get_obj_num_bodies(self, obj_id: int) -> int:
        """Number of bodies B."""

    @abc.abstractmethod
    def get_obj_num_dofs(self, obj_id: int) -> int:
        """Number of dofs D, the free root not counted."""

    @abc.abstractmethod
    def get_obj_body_names(self, obj_id: int) -> list[str]:
        """Names of the B bodies, as in the character file."""

    @abc.abstractmethod
    def find_obj_body_id(self, obj_id: int, body_name: str) -> int:
        """Index of a body of the object."""

    @abc.abstractmethod
    def get_obj_mass(self, obj_id: int) -> float:
        """Mass of the whole object (kg)."""

    @abc.abstractmethod
    def get_obj_dof_limits(self, obj_id: int) -> tuple[Tensor, Tensor]:
        """Lower and upper limits (D,) each (rad), infinite where there is none."""

    @abc.abstractmethod
    def get_obj_torque_limits(self, obj_id: int) -> Tensor:
        """(D,) greatest torque of the drives (N m), infinite where there is none."""

    # ------------------------------------------------------------------ state

    @abc.abstractmethod
    def get_root_pos(self, obj_id: int) -> Tensor:
        """(num_envs, 3) m."""

    @abc.abstractmethod
    def get_root_rot(self, obj_id: int) -> Tensor:
        """(num_envs, 4)."""

    @abc.abstractmethod
    def get_root_vel(self, obj_id: int) -> Tensor:
        """(num_envs, 3) m/s, world frame, of the root body's origin."""

    @abc.abstractmethod
    def get_root_ang_vel(self, obj_id: int) -> Tensor:
        """(num_envs, 3) rad/s, world frame."""

    @abc.abstractmethod
    def get_dof_pos(self, obj_id: int) -> Tensor:
        """(num_envs, D) rad."""

    @abc.abstractmethod
    def get_dof_vel(self, obj_id: int) -> Tensor:
        """(num_envs, D) rad/s."""

    @abc.abstractmethod
    def get_dof_forces(self, obj_id: int) -> Tensor:
        """(num_envs, D) torques of the drives in the last physics step (N m)."""

    @abc.abstractmethod
    def get_body_pos(self, obj_id: int) -> Tensor:
        """(num_envs, B, 3) m."""

    @abc.abstractmethod
    def get_body_rot(self, obj_id: int) -> Tensor:
        """(num_envs, B, 4)."""

    @abc.abstractmethod
    def get_body_vel(self, obj_id: int) -> Tensor:
        """(num_envs, B, 3) m/s, world frame, of the bodies' origins."""

    @abc.abstractmethod
    def get_body_ang_vel(self, obj_id: int) -> Tensor:
        """(num_envs, B, 3) rad/s, world frame."""

    @abc.abstractmethod
    def get_contact_forces(self, obj_id: int) -> Tensor:
        """(num_envs, B, 3) N, world frame: the sum of all contact forces on each body in the last physics step."""

    @abc.abstractmethod
    def get_ground_contact_forces(self, obj_id: int) -> Tensor:
        """(num_envs, B, 3) N, world frame: the contact forces of the ground alone."""

    @abc.abstractmethod
    def set_root_pos(self, env_ids: Tensor | None, obj_id: int, root_pos: Tensor) -> None:
        """Set (len(env_ids), 3) or (3,); env_ids None means all environments, here and in all setters."""

    @abc.abstractmethod
    def set_root_rot(self, env_ids: Tensor | None, obj_id: int, root_rot: Tensor) -> None:
        """Set (len(env_ids), 4) or (4,)."""

    @abc.abstractmethod
    def set_root_vel(self, env_ids: Tensor | None, obj_id: int, root_vel: Tensor) -> None:
        """Set (len(env_ids), 3) or (3,), world frame."""

    @abc.abstractmethod
    def set_root_ang_vel(self, env_ids: Tensor | None, obj_id: int, root_ang_vel: Tensor) -> None:
        """Set (len(env_ids), 3) or (3,), world frame."""

    @abc.abstractmethod
    def set_dof_pos(self, env_ids: Tensor | None, obj_id: int, dof_pos: Tensor) -> None:
        """Set (len(env_ids), D) or (D,)."""

    @abc.abstractmethod
    def set_dof_vel(self, env_ids: Tensor | None, obj_id: int, dof_vel: Tensor) -> None:
        """Set (len(env_ids), D) or (D,)."""

    @abc.abstractmethod
    def set_body_forces(self, env_ids: Tensor | None, obj_id: int, body_id: int, forces: Tensor) -> None:
        """Push a body at its centre of mass with (len(env_ids), 3) or (3,) N, world frame, during the next step()."""

    @abc.abstractmethod
    def set_gravity(self, gravity: Sequence[float]) -> None:
        """Gravity (3,) m/s^2 of all environments."""

    @abc.abstractmethod
    def reset_envs(self, env_ids: Tensor | None) -> None:
        """Put environments back to the state in which they were created."""

    @abc.abstractmethod
    def get_state(self) -> Tensor:
        """Everything that the simulations go on from, (num_envs, S) float64; its meaning is the backend's own."""

    @abc.abstractmethod
    def set_state(self, state: Tensor) -> None:
        """Go on from a state of get_state() of the same scene."""

    # ------------------------------------------------------------------ filming

    @abc.abstractmethod
    def stage_actors(self, env_id: int) -> list[ActorSpec]:
        """Who is on stage in an environment: one ActorSpec an object."""

    @abc.abstractmethod
    def body_poses(self, env_id: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each actor copies of its bodies' positions (B, 3) m and rotations (B, 4)."""

    def body_contacts(self, env_id: int) -> list[np.ndarray]:
        """For each actor a copy of the force of the ground on its bodies (B, 3) N."""
        forces = (self.get_ground_contact_forces(obj_id)[env_id] for obj_id in range(self.get_objs_per_env()))
        return [force.cpu().numpy().astype(np.float64) for force in forces]

    @abc.abstractmethod
    def _make_recorder(self, config: VideoConfig) -> VideoRecorder:
        """This engine's recorder; called at the first start of a recording."""

    def enabled_record_video(self) -> bool:
        """Whether the configuration asks for video."""
        return self._video.enabled

    def is_recording_video(self) -> bool:
        """Whether a clip is being filmed."""
        return self._recorder is not None and self._recorder.is_recording

    def get_video_config(self) -> VideoConfig:
        """The configuration of filming."""
        return self._video

    def get_video_recorder(self) -> VideoRecorder:
        """The engine's recorder, made when it is first asked for; it opens no GL context before it starts."""
        if self._recorder is None:
            self._recorder = self._make_recorder(self._video)
        return self._recorder

    def start_video_recording(self, path: str | Path | None = None, **options: Any) -> None:
        """Begin a clip at the present state; options override fields of VideoConfig for this clip."""
        self.get_video_recorder().start(path, **options)

    def stop_video_recording(self) -> Clip | None:
        """End the clip; returns it once its file is complete, None if nothing was filmed or filming failed."""
        return self._recorder.stop() if self._recorder is not None else None

    def get_video_recording(self) -> Clip | None:
        """The last finished clip."""
        return self._recorder.last_clip if self._recorder is not None else None

    def get_video_recordings(self) -> list[Clip]:
        """All clips of the last recording: several views or environments may have one each."""
        return self._recorder.last_clips if self._recorder is not None else []

    @contextmanager
    def recording(self, path: str | Path | None = None, **options: Any) -> Iterator[VideoRecorder]:
        """Film what is stepped inside the with block."""
        self.start_video_recording(path, **options)
        try:
            yield self.get_video_recorder()
        finally:
            self.stop_video_recording()

    def close(self) -> None:
        """Finish a clip that is being filmed and free what the engine holds; may be called twice."""
        if not self._closed:
            self._closed = True
            if self._recorder is not None:
                self._recorder.close()

    def _to_tensor(self, values: np.ndarray) -> Tensor:
        return torch.from_numpy(values.astype(np.float32)).to(self._device)
