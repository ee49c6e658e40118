"""A small environment of Gymnasium's own kind, which MimicKit knows nothing of."""

from typing import Any

import gymnasium
import numpy as np

LENGTH = 6  # steps


class Square(gymnasium.Env):
    """A square moves to where the action says; the picture is black but for it. Of odd size, at 12 fps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 12}  # noqa: RUF012 - as Gymnasium has it
    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def __init__(self, render_mode: str | None = "rgb_array") -> None:
        self.render_mode = render_mode
        self.pos = np.zeros(2, dtype=np.float32)
        self.steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.pos = self.np_random.uniform(-0.1, 0.1, 2).astype(np.float32)
        self.steps = 0
        return self.pos.copy(), {}

    def step(self, action: Any) -> Any:
        self.pos = np.clip(self.pos + 0.2 * np.asarray(action), -1.0, 1.0).astype(np.float32)
        self.steps += 1
        return self.pos.copy(), float(self.pos.sum()), False, self.steps == LENGTH, {}

    def render(self) -> Any:
        frame = np.zeros((95, 127, 3), dtype=np.uint8)
        row, column = (int((p + 1.0) * 0.4 * side) for p, side in zip(self.pos[::-1], frame.shape, strict=False))
        frame[row : row + 12, column : column + 12] = 255
        return frame
