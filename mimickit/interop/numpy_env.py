"""An environment of ours in numpy: what all adapters share."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mimickit.envs.base_env import OUTCOMES, BaseEnv, DoneFlags
from mimickit.util.keys import ConfigError

RENDER_MODE = "rgb_array"
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Step:
    """What a step led to, before any environment is reset."""

    obs: NDArray[np.float32]  # (num_envs, O)
    reward: NDArray[np.float32]  # (num_envs,)
    terminated: Bools  # (num_envs,) the task failed or succeeded
    truncated: Bools  # (num_envs,) time is over
    outcome: list[str | None]  # fail, success, time; None goes on
    info: dict[str, NDArray[Any]] = field(default_factory=dict)  # (num_envs, ...) each

    @property
    def done(self) -> Bools:
        """(num_envs,) where an episode has ended."""
        return self.terminated | self.truncated


class NumpyEnv:
    """Steps an environment with arrays; the caller resets what is done."""

    def __init__(self, env: BaseEnv, render_mode: str | None = None) -> None:
        """Raises ConfigError for a render mode other than rgb_array or None."""
        if render_mode not in (None, RENDER_MODE):
            raise ConfigError(f"render_mode: expected {RENDER_MODE} or none, found {render_mode!r}")
        self.env = env
        self.obs = np.zeros((env.num_envs, *env.obs_space.shape), dtype=np.float32)  # last observations

    def seed(self, seed: int | None) -> None:
        """Begin everything random anew; None changes nothing."""
        if seed is not None:
            self.env.seed(int(seed))

    def reset(self, which: Bools | None = None) -> NDArray[np.float32]:
        """Begin new episodes where which (num_envs,) is true, everywhere if None; all observations (num_envs, O)."""
        ids = None if which is None else torch.from_numpy(np.flatnonzero(which)).to(self.env.device)
        self.obs = _array(self.env.reset(ids))
        return self.obs

    def step(self, action: Any) -> Step:
        """Advance all environments by one control step with actions (num_envs, A).

        Raises:
            ValueError: actions of another shape.
        """
        shape = (self.env.num_envs, *self.env.action_space.shape)
        values = np.asarray(action, dtype=np.float32)
        if values.shape != shape:
            raise ValueError(f"action: expected shape {shape}, found {values.shape}")
        # a copy: the caller may go on to write into its own
        obs, reward, done, info = self.env.step(torch.from_numpy(values.copy()).to(self.env.device))
        self.obs, flags = _array(obs), _array(done)
        truncated = flags == DoneFlags.TIME
        return Step(
            obs=self.obs,
            reward=_array(reward).astype(np.float32),
            terminated=(flags != DoneFlags.NULL) & ~truncated,
            truncated=truncated,
            outcome=[OUTCOMES.get(DoneFlags(flag)) for flag in flags.tolist()],
            info={key: _array(value) for key, value in info.items()},
        )

    def metadata(self) -> dict[str, Any]:
        """How it can be rendered, in Gymnasium's words."""
        fps = self.env.control_freq
        return {"render_modes": [RENDER_MODE], "render_fps": round(fps) if abs(fps - round(fps)) < 1e-6 else fps}


def _array(values: torch.Tensor) -> NDArray[Any]:
    return values.detach().cpu().numpy()
