"""DeepMimic: a character learns to follow a motion clip (Peng et al. 2018)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.anim.motion import LoopMode
from mimickit.anim.motion_lib import MotionLib
from mimickit.engines.engine import ControlMode
from mimickit.envs import observations
from mimickit.envs.base_env import DoneFlags, EnvMode
from mimickit.envs.char_env import CharEnv
from mimickit.envs.tracking import CharState, RewardConfig, tracking_errors, tracking_reward
from mimickit.util.keys import ConfigError, as_bool, as_float, as_floats, as_int, as_list, nearest
from mimickit.video.config import GhostMode

_GOLDEN = 0.6180339887  # starts of test episodes are spread over a clip by multiples of this


class ActionMode(Enum):
    """What an action of zero asks for."""

    ABSOLUTE = "absolute"  # the action is the PD target, as in the paper
    RESIDUAL = "residual"  # the action is added to the reference's dofs a moment ahead: easier, learns far faster


class PoseDistance(Enum):
    """Which distance between the bodies and their reference ends an episode."""

    MAX = "max"  # of the body that is furthest away
    MEAN = "mean"  # over all bodies


@dataclass
class Reference:
    """The clip at the present time and at T - 1 moments ahead, (num_envs, T, ...)."""

    root_pos: Tensor
    root_rot: Tensor
    root_vel: Tensor
    root_ang_vel: Tensor
    joint_rot: Tensor
    dof_vel: Tensor
    dof_pos: Tensor
    body_pos: Tensor
    body_rot: Tensor

    def put(self, env_ids: Tensor, other: "Reference") -> None:
        """Take over other's rows, (len(env_ids), T, ...)."""
        for field in fields(self):
            getattr(self, field.name)[env_ids] = getattr(other, field.name)

    def now(self) -> CharState:
        """The clip at the present time."""
        names = [field.name for field in fields(CharState)]
        return CharState(**{name: getattr(self, name)[:, 0] for name in names})


class DeepMimicEnv(CharEnv):
    """Episodes start at a moment of the clip in the clip's own pose; the reward is for being where the clip is."""

    KEYS: ClassVar[tuple[str, ...]] = (
        *CharEnv.KEYS,
        "motion_file",
        "rand_reset",
        "default_reset_prob",
        "ref_char_offset",
        "visualize_ref_char",
        "pose_termination",
        "pose_termination_dist",
        "pose_termination_measure",
        "enable_phase_obs",
        "num_phase_encoding",
        "enable_tar_obs",
        "tar_obs_steps",
        "log_tracking_error",
        "joint_err_w",
        "action_mode",
        "residual_scale",
        "residual_lookahead",
        *(f"reward_{field.name}" for field in fields(RewardConfig)),
    )

    def _prepare(self) -> None:
        super()._prepare()
        self._motion_ids = torch.zeros(self.num_envs, dtype=torch.int64, device=self.device)
        self._motion_times = torch.zeros(self.num_envs, device=self.device)
        self._ref: Reference | None = None
        self._test_starts = 0
        self._error_sums: dict[str, float] = {}
        self._errors: dict[str, Tensor] = {}  # of the last step
        self._error_count = 0
        self._read_config(self._config, self._source)

    def _read_config(self, config: Mapping[str, Any], source: str) -> None:
        def number(key: str, default: float) -> float:
            return as_float(config.get(key, default), key, source)

        def flag(key: str, default: bool) -> bool:
            return as_bool(config.get(key, default), key, source)

        if "motion_file" not in config:
            raise ConfigError(f"{source}: motion_file is missing: expected the path of a clip or a dataset YAML")
        self._rand_reset = flag("rand_reset", True)
        self._default_reset_prob = number("default_reset_prob", 0.0)
        self._show_reference = flag("visualize_ref_char", False)
        offset = config.get("ref_char_offset") or (0, 0, 0)
        self._ghost_offset = np.asarray(as_floats(offset, "ref_char_offset", source))
        if self._ghost_offset.shape != (3,):
            raise ConfigError(f"{source}: ref_char_offset: expected 3 numbers (m), found {len(self._ghost_offset)}")
        self._pose_termination = flag("pose_termination", True)
        self._pose_termination_dist = number("pose_termination_dist", 1.0)
        self._pose_measure = _choice(PoseDistance, config, "pose_termination_measure", "max", source)
        self._use_phase = flag("enable_phase_obs", True)
        self._num_phase = as_int(config.get("num_phase_encoding", 1), "num_phase_encoding", source)
        self._use_targets = flag("enable_tar_obs", True)
        steps = as_list(config.get("tar_obs_steps") or [1, 2, 3], "tar_obs_steps", source, "control steps")
        self._tar_steps = [as_int(step, "tar_obs_steps", source) for step in steps]
        self._log_errors = flag("log_tracking_error", True)
        self._action_mode = _choice(ActionMode, config, "action_mode", "absolute", source)
        self._residual_scale = number("residual_scale", 0.5)
        self._lookahead = number("residual_lookahead", 0.1)
        default = RewardConfig()
        terms = [field.name for field in fields(RewardConfig)]
        self._reward_config = RewardConfig(**{t: number(f"reward_{t}", getattr(default, t)) for t in terms})
        self.reward_bound = self._reward_config.bound
        # moments at which the reference is read: now, the target steps, and where a residual action is added
        self._moments = [0.0, *(step * self._dt for step in self._tar_steps), self._lookahead]

    def _build(self) -> None:
        self._lib = MotionLib(self._config["motion_file"], self._char, device=self.device)
        self._offsets = torch.tensor(self._moments, device=self.device)
        self._joint_w, self._dof_w = self._read_joint_weights()
        self._clamped = self._lib.loop_modes == LoopMode.CLAMP
        if bool(self._clamped.all()):
            longest = float(self._lib.lengths.max())
            self.max_episode_steps = max(1, min(self.max_episode_steps, int(np.ceil(longest / self._dt - 1e-4))))
        super()._build()

    def _read_joint_weights(self) -> tuple[Tensor, Tensor]:
        """Weights (J,) and (D,) of joints and their dofs; fixed joints may be left out of the file's list."""
        weights = self._config.get("joint_err_w")
        moving = [joint for joint in self._char.joints if joint.dof_dim]
        values = [1.0] * len(moving) if weights is None else as_floats(weights, "joint_err_w", self._source)
        weighed = self._char.joints if len(values) == self._char.num_joints else moving
        if len(values) != len(weighed):
            names = ", ".join(joint.name for joint in moving)
            raise ConfigError(f"{self._source}: joint_err_w: expected {len(moving)} numbers ({names}), "
                              f"found {len(values)}")  # fmt: skip
        joint_w, dof_w = torch.zeros(self._char.num_joints), torch.zeros(self._char.num_dofs)
        for joint, weight in zip(weighed, values, strict=True):
            joint_w[joint.body - 1] = weight
            dof_w[joint.dof_start : joint.dof_start + joint.dof_dim] = weight
        return joint_w.to(self.device), dof_w.to(self.device)

    def _build_action_space(self) -> gymnasium.spaces.Box:
        if self._action_mode is ActionMode.RESIDUAL:
            mode = self._engine.get_control_mode()
            if mode not in (ControlMode.POS, ControlMode.PD_EXPLICIT):
                raise ConfigError(f"{self._source}: action_mode: residual adds to target positions: the engine's "
                                  f"control_mode must be pos or pd_explicit, found {mode.value!r}")  # fmt: skip
            high = np.ones(self._char.num_dofs, dtype=np.float32)
            return gymnasium.spaces.Box(-high, high, dtype=np.float32)
        return super()._build_action_space()

    # ------------------------------------------------------------------ the reference

    def _read_reference(self, motion_ids: Tensor, times: Tensor) -> Reference:
        """The clips of (n,) at times (n,) and ahead, (n, T, ...)."""
        moments = times.unsqueeze(-1) + self._offsets
        frame = self._lib.frame(motion_ids.unsqueeze(-1).expand_as(moments), moments)
        body_pos, body_rot = self._char.forward_kinematics(frame.root_pos, frame.root_rot, frame.joint_rot)
        return Reference(
            frame.root_pos, frame.root_rot, frame.root_vel, frame.root_ang_vel, frame.joint_rot, frame.dof_vel,
            self._char.rot_to_dof(frame.joint_rot), body_pos, body_rot,
        )  # fmt: skip

    @property
    def _reference(self) -> Reference:
        if self._ref is None:
            self._ref = self._read_reference(self._motion_ids, self._motion_times)
        return self._ref

    def _sample_start(self, n: int) -> tuple[Tensor, Tensor]:
        """Clips (n,) and times (n,) at which episodes begin: at random in training, spread evenly in a test."""
        if self.mode is EnvMode.TEST:
            index = torch.arange(self._test_starts, self._test_starts + n, device=self.device)
            self._test_starts += n
            used = torch.nonzero(self._lib.weights > 0).squeeze(-1)
            ids = used[index % len(used)]
            times = torch.frac(index.double() * _GOLDEN).float() * self._lib.lengths[ids]
            return ids, torch.where(self._clamped[ids] | (not self._rand_reset), 0.0, times)
        ids = self._lib.sample_motions(n, self._generator)
        if not self._rand_reset:
            return ids, torch.zeros(n, device=self.device)
        return ids, self._lib.sample_time(ids, self._generator)

    def _reset_envs(self, env_ids: Tensor) -> None:
        self._engine.reset_envs(env_ids)
        ids, times = self._sample_start(len(env_ids))
        self._motion_ids[env_ids], self._motion_times[env_ids] = ids, times
        ref = self._read_reference(ids, times)
        self._reference.put(env_ids, ref)
        self._set_char(
            env_ids, ref.root_pos[:, 0], ref.root_rot[:, 0], ref.dof_pos[:, 0],
            ref.root_vel[:, 0], ref.root_ang_vel[:, 0], ref.dof_vel[:, 0],
        )  # fmt: skip
        if self._default_reset_prob > 0.0 and self.mode is EnvMode.TRAIN:
            chosen = torch.rand(len(env_ids), generator=self._generator) < self._default_reset_prob
            if bool(chosen.any()):
                super()._reset_envs(env_ids[chosen])

    # ------------------------------------------------------------------ stepping

    def _action_to_cmd(self, action: Tensor) -> Tensor:
        if self._action_mode is ActionMode.RESIDUAL:
            return self._reference.dof_pos[:, -1] + self._residual_scale * action
        return action

    def _after_step(self) -> None:
        self._motion_times += self._dt
        self._ref = None
        self._state = self._char_state()
        if self._log_errors and self.mode is EnvMode.TEST:
            self._errors = tracking_errors(self._state, self._reference.now())
            for name, error in self._errors.items():
                self._error_sums[name] = self._error_sums.get(name, 0.0) + float(error.mean())
            self._error_count += 1

    def _char_state(self) -> CharState:
        engine, char = self._engine, self._char_id
        return CharState(
            root_pos=engine.get_root_pos(char),
            root_rot=engine.get_root_rot(char),
            root_vel=engine.get_root_vel(char),
            root_ang_vel=engine.get_root_ang_vel(char),
            joint_rot=self._char.dof_to_rot(engine.get_dof_pos(char)),
            dof_vel=engine.get_dof_vel(char),
            body_pos=engine.get_body_pos(char),
            body_rot=engine.get_body_rot(char),
        )

    def _compute_obs(self, env_ids: Tensor | None) -> Tensor:
        pick = slice(None) if env_ids is None else env_ids
        ref, parts = self._reference, [super()._compute_obs(env_ids)]
        if self._use_targets:
            ahead = slice(1, 1 + len(self._tar_steps))
            parts.append(
                observations.target_obs(
                    root_pos=self._engine.get_root_pos(self._char_id)[pick],
                    root_rot=self._engine.get_root_rot(self._char_id)[pick],
                    tar_root_pos=ref.root_pos[pick, ahead],
                    tar_root_rot=ref.root_rot[pick, ahead],
                    tar_dof_pos=ref.dof_pos[pick, ahead],
                    tar_key_pos=ref.body_pos[pick, ahead][:, :, self._key_ids],
                    global_obs=self._global_obs,
                )
            )
        if self._use_phase:
            phase = self._lib.calc_phase(self._motion_ids[pick], self._motion_times[pick])
            parts.append(observations.phase_obs(phase, self._num_phase))
        return torch.cat(parts, dim=-1)

    def _compute_reward(self) -> Tensor:
        return tracking_reward(
            self._state, self._reference.now(), joint_w=self._joint_w, dof_w=self._dof_w, key_ids=self._key_ids,
            config=self._reward_config,
        )  # fmt: skip

    def _compute_done(self) -> Tensor:
        ended = self._clamped[self._motion_ids] & (
            self._motion_times >= self._lib.lengths[self._motion_ids] - 1e-4
        )
        done = torch.where(ended, DoneFlags.SUCC, DoneFlags.NULL)
        failed = super()._compute_done() == DoneFlags.FAIL
        if self._early_end and self._pose_termination:
            failed |= self._strayed()
        return torch.where(failed, DoneFlags.FAIL, done)

    def _strayed(self) -> Tensor:
        """(num_envs,) whether the bodies are too far from their reference."""
        distance = (self._state.body_pos - self._reference.body_pos[:, 0]).norm(dim=-1)
        if self._pose_measure is PoseDistance.MEAN:
            return distance.mean(-1) > self._pose_termination_dist
        return distance.amax(-1) > self._pose_termination_dist

    # ------------------------------------------------------------------ phases, films, resuming

    def set_mode(self, mode: EnvMode) -> None:
        super().set_mode(mode)
        self._test_starts = 0
        self._error_sums, self._errors, self._error_count = {}, {}, 0

    def _step_info(self) -> dict[str, Tensor]:
        return self._errors

    def record_diagnostics(self) -> dict[str, float]:
        return {name: total / self._error_count for name, total in self._error_sums.items()}

    def _film_name(self) -> str:
        return Path(self._config["motion_file"]).stem

    def episode_facts(self, env_id: int) -> dict[str, Any]:
        clip = self._lib.motion_files[int(self._motion_ids[env_id])]
        return {"motion": Path(clip).name, "motion_time": float(self._motion_times[env_id])}

    def _film_options(self) -> dict[str, Any]:
        options = super()._film_options()
        if self._show_reference and self._engine.get_video_config().ghost is GhostMode.OFF:
            options["ghost"] = GhostMode.ON if self._ghost_offset.any() else GhostMode.BESIDE
        return options

    def _film_ghost(self, env_id: int) -> list[tuple[np.ndarray, np.ndarray]]:
        ref = self._reference
        pos, rot = ref.body_pos.cpu().numpy()[env_id, 0], ref.body_rot.cpu().numpy()[env_id, 0]
        return [(pos + self._ghost_offset, rot)]

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "motion_ids": self._motion_ids.clone(),
            "motion_times": self._motion_times.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._motion_ids.copy_(state["motion_ids"])
        self._motion_times.copy_(state["motion_times"])
        self._ref = None


def _choice(kind: type[Enum], config: Mapping[str, Any], key: str, default: str, source: str) -> Any:
    """The member of kind that config[key] names."""
    known = {member.value: member for member in kind}
    name = str(config.get(key, default))
    if name not in known:
        raise ConfigError(f"{source}: {key}: found {name!r}{nearest(name, known)}")
    return known[name]
