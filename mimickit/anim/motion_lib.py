"""Many clips sampled at any time, vectorised over environments.

All clips lie one after the other in one table of frames, so that a lookup is two gathers and an
interpolation, however many clips there are.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from mimickit.anim.char_model import CharModel
from mimickit.anim.clip_table import ClipTable
from mimickit.anim.dataset import read_dataset
from mimickit.anim.motion import ROOT_SIZE, LoopMode, Motion, MotionError, load_motion
from mimickit.util.rotations import quat_mul, quat_rotate, yaw_quat

_STRAIGHT = 1e-4  # rad a cycle, below which a loop's path is taken as straight


@dataclass(frozen=True)
class MotionFrame:
    """Poses and velocities at sampled times; the leading shape is that of the times."""

    root_pos: Tensor  # (..., 3) m
    root_rot: Tensor  # (..., 4) x y z w
    root_vel: Tensor  # (..., 3) m/s, world
    root_ang_vel: Tensor  # (..., 3) rad/s, world
    joint_rot: Tensor  # (..., J, 4)
    dof_vel: Tensor  # (..., D) rad/s, as CharModel.dof_vel


class MotionLib:
    """The clips of one motion file or of a dataset of them, for one character."""

    def __init__(
        self, motion_file: str | os.PathLike[str], char: CharModel, *, device: str | torch.device = "cpu"
    ) -> None:
        """Load a clip, or the clips and weights of a dataset (.yaml). Raises MotionError."""
        path = Path(motion_file)
        is_dataset = path.suffix in (".yaml", ".yml")
        entries = read_dataset(path) if is_dataset else [(path, 1.0)]
        motions = [_load_for(char, file) for file, _ in entries]
        self._files = [file for file, _ in entries]
        self._device = torch.device(device)
        self._num_joints = char.num_joints
        self._num_dofs = char.num_dofs
        self._weights = self._tensor([weight for _, weight in entries])
        self._lengths = self._tensor([motion.length for motion in motions])
        self._fps = self._tensor([motion.fps for motion in motions])
        self._loop_modes = self._ids([int(motion.loop_mode) for motion in motions])
        counts = [motion.num_frames for motion in motions]
        self._last_frames = self._ids([count - 1 for count in counts])
        self._starts = self._ids([sum(counts[:i]) for i in range(len(counts))])
        cpu_char = char if char.device.type == "cpu" else CharModel(char.info)
        self._build_tables([ClipTable(motion, cpu_char) for motion in motions])

    @property
    def num_motions(self) -> int:
        """M, the number of clips."""
        return len(self._files)

    @property
    def motion_files(self) -> list[Path]:
        """The clips' files, in the order of their ids."""
        return list(self._files)

    @property
    def lengths(self) -> Tensor:
        """Seconds from first to last frame (M,); one cycle of a wrapped clip."""
        return self._lengths

    @property
    def loop_modes(self) -> Tensor:
        """LoopMode of every clip (M,), int64."""
        return self._loop_modes

    @property
    def weights(self) -> Tensor:
        """Relative frequency (M,) with which a clip is sampled."""
        return self._weights

    def sample_motions(self, n: int, generator: torch.Generator) -> Tensor:
        """n clip ids (n,) int64, drawn by weight."""
        return torch.multinomial(self._weights, n, replacement=True, generator=generator)

    def sample_time(self, motion_ids: Tensor, generator: torch.Generator, truncate: float = 0.0) -> Tensor:
        """Uniform times (n,) s within each clip, `truncate` s before its end at the latest, or its start."""
        phase = torch.rand(motion_ids.shape, generator=generator, device=self._device)
        return phase * (self._lengths[motion_ids] - truncate).clamp_min(0.0)

    def calc_phase(self, motion_ids: Tensor, times: Tensor) -> Tensor:
        """How far (n,) in [0, 1] each clip has come: a wrapped one starts again, a clamped one stays at 1."""
        length = self._lengths[motion_ids]
        phase = times / length.clamp_min(1e-9)
        wraps = self._loop_modes[motion_ids] == LoopMode.WRAP
        phase = torch.where(wraps, phase - torch.floor(phase), phase.clamp(0.0, 1.0))
        return torch.where(length > 0.0, phase, torch.zeros_like(phase))

    def frame(self, motion_ids: Tensor, times: Tensor) -> MotionFrame:
        """The clips' poses and velocities at times (...,) s, any shape that broadcasts with the ids.

        Past its end a clamped clip holds its last pose with no velocity; a wrapped clip goes on from where,
        and facing the way, the cycle ended. Rotations are interpolated by slerp, everything else linearly.
        """
        motion_ids, times = torch.broadcast_tensors(motion_ids, times)
        shape = times.shape
        ids, times = motion_ids.reshape(-1), times.reshape(-1)
        cycle, local, moving = self._local_time(ids, times)
        low, blend = self._locate(ids, local)
        blend = blend.unsqueeze(-1)
        linear = torch.lerp(self._linear.index_select(0, low), self._linear.index_select(0, low + 1), blend)
        rot = self._slerp(low, blend)
        pos, vel, ang_vel, dof_vel = linear[:, :3], linear[:, 3:6], linear[:, 6:9], linear[:, 9:]
        root_rot = rot[:, 0]
        if self._has_wrap:
            pos, root_rot, vel, ang_vel = self._continue(ids, cycle, pos, root_rot, vel, ang_vel)
        still = moving.unsqueeze(-1)
        return MotionFrame(
            root_pos=pos.reshape(*shape, 3),
            root_rot=root_rot.reshape(*shape, 4),
            root_vel=(vel * still).reshape(*shape, 3),
            root_ang_vel=(ang_vel * still).reshape(*shape, 3),
            joint_rot=rot[:, 1:].reshape(*shape, self._num_joints, 4),
            dof_vel=(dof_vel * still).reshape(*shape, self._num_dofs),
        )

    def _local_time(self, ids: Tensor, times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Whole cycles done, time within the clip, and 1.0 where the clip moves then, else 0.0; each (n,)."""
        length = self._lengths[ids]
        wraps = (self._loop_modes[ids] == LoopMode.WRAP) & (length > 0.0)
        cycle = torch.where(wraps, torch.floor(times / length.clamp_min(1e-9)), torch.zeros_like(times))
        clamped = torch.minimum(times.clamp_min(0.0), length)
        local = torch.where(wraps, times - cycle * length, clamped)
        moving = wraps | (clamped == times)
        return cycle, local, moving.to(times.dtype)

    def _locate(self, ids: Tensor, local: Tensor) -> tuple[Tensor, Tensor]:
        """Row of the frame before each time, and how far (0 to 1) the time is on the way to the next row."""
        place = local * self._fps[ids]
        last = self._last_frames[ids]
        before = torch.minimum(place.floor().long(), last - 1).clamp_min(0)
        blend = (place - before).clamp(0.0, 1.0)
        blend = torch.where(last > 0, blend, torch.zeros_like(blend))
        return self._starts[ids] + before, blend

    def _slerp(self, low: Tensor, blend: Tensor) -> Tensor:
        """Rotations (n, 1 + J, 4) between rows low and low + 1, whose angles are known and signs alike."""
        angles = self._angles.index_select(0, low)
        scale = 1.0 / torch.sin(angles)
        before = (torch.sin((1.0 - blend) * angles) * scale).unsqueeze(-1)
        after = (torch.sin(blend * angles) * scale).unsqueeze(-1)
        return before * self._rots.index_select(0, low) + after * self._rots.index_select(0, low + 1)

    def _continue(
        self, ids: Tensor, cycle: Tensor, pos: Tensor, rot: Tensor, vel: Tensor, ang_vel: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The root's state carried on by whole cycles, each of which ends displaced and turned."""
        turn, step = self._turns[ids], self._steps[ids]
        yaw = yaw_quat(cycle * turn)
        # Cycles 0 .. k - 1 add up steps turned by 0, turn, .. (k - 1) turn: a geometric series.
        half = 0.5 * turn
        straight = half.abs() < 0.5 * _STRAIGHT
        safe = torch.where(straight, torch.ones_like(half), half)
        scale = torch.where(straight, cycle, torch.sin(cycle * safe) / torch.sin(safe))
        travelled = quat_rotate(yaw_quat((cycle - 1.0) * half), step) * scale.unsqueeze(-1)
        origin = self._origins[ids]
        pos = quat_rotate(yaw, pos - origin) + origin + travelled
        return pos, quat_mul(yaw, rot), quat_rotate(yaw, vel), quat_rotate(yaw, ang_vel)

    def _build_tables(self, tables: list[ClipTable]) -> None:
        # One spare row: a lookup at the very last frame reads the one after it too, with no weight.
        last = tables[-1]
        self._linear = torch.cat([*(table.linear for table in tables), last.linear[-1:]]).to(self._device)
        self._rots = torch.cat([*(table.rots for table in tables), last.rots[-1:]]).to(self._device)
        self._angles = torch.cat([table.angles for table in tables]).to(self._device)
        self._turns = torch.stack([table.turn for table in tables]).to(self._device)
        self._steps = torch.stack([table.step for table in tables]).to(self._device)
        self._origins = torch.stack([table.origin for table in tables]).to(self._device)
        self._has_wrap = bool((self._loop_modes == LoopMode.WRAP).any())

    def _tensor(self, values: list[float]) -> Tensor:
        return torch.tensor(values, dtype=torch.float32, device=self._device)

    def _ids(self, values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.int64, device=self._device)


def _load_for(char: CharModel, path: Path) -> Motion:
    motion = load_motion(path)
    if motion.num_dofs != char.num_dofs:
        raise MotionError(
            f"{path}: frames: expected {ROOT_SIZE + char.num_dofs} numbers a frame (root {ROOT_SIZE} + "
            f"{char.num_dofs} dofs of {char.info.path}), found {motion.frames.shape[1]}"
        )
    return motion
