"""How the replay page keeps poses: whole steps, changes from state to state, byte by byte, deflated.

The inflated stream is a row of blocks. A block of C channels and T states is one byte, the width W, and W planes of
C x T bytes: plane k holds byte k (lowest first) of every channel's changes, as 2n for n >= 0 and -2n - 1 for n < 0.
Poses come first, 256 states a block, with 7 channels a body (position x y z, rotation x y z w) of all actors and of as
many ghosts; changes go on from block to block. Then comes one block of the numbers that were noted (32-bit floats,
taken as integers), if there are any.
"""

import math
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.video.snapshot import FloatArray, Snapshot

POS_STEPS = 1e4  # a metre: a tenth of a millimetre
ROT_STEPS = 16000.0  # of a quaternion's component
_CHUNK = 256  # states
_IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


class StateEncoder:
    """Takes one environment's states in order; memory holds a chunk, and what is compressed."""

    def __init__(self, num_solid: int) -> None:
        """num_solid: bodies of all actors; there is room for a ghost of each."""
        num_bodies = 2 * num_solid
        self._last = np.tile(np.concatenate([np.zeros(3), _IDENTITY]), (num_bodies, 1))
        self._last_steps = np.zeros(7 * num_bodies, dtype=np.int32)
        self._rows: list[FloatArray] = []
        self._deflate = zlib.compressobj(9)
        self._parts: list[bytes] = []
        self._is_cut = False
        self._numbers: dict[str, list[float]] = {}
        self._words: dict[str, list[list[Any]]] = {}
        self.num_states = 0
        self.max_ghosts = 0
        self.cuts: list[int] = []
        """States that begin an episode."""
        self.ghosts: list[list[int]] = []
        """First state with ghosts and first without, of every stretch."""

    def skip(self, snapshot: Snapshot) -> None:
        """Pass over a state; a cut in it shows in the next."""
        self._is_cut = self._is_cut or snapshot.is_cut

    def add(self, snapshot: Snapshot) -> None:
        """Take the next state. Ghosts that it doesn't have stay, unseen, where they were."""
        index, self.num_states = self.num_states, self.num_states + 1
        if snapshot.is_cut or self._is_cut:
            self.cuts.append(index)
        self._is_cut = False
        self.max_ghosts = max(self.max_ghosts, len(snapshot.ghosts))
        if snapshot.ghosts:
            if self.ghosts and self.ghosts[-1][1] == index:
                self.ghosts[-1][1] += 1
            else:
                self.ghosts.append([index, index + 1])
        poses = [np.concatenate(pose, axis=1) for pose in (*snapshot.poses, *snapshot.ghosts)]
        row = np.concatenate(poses)
        row = np.concatenate([row, self._last[len(row) :]])
        # q and -q are one rotation: the nearer one makes small changes and can be interpolated as it is
        row[:, 3:] *= np.where(np.sum(row[:, 3:] * self._last[:, 3:], axis=1, keepdims=True) < 0.0, -1.0, 1.0)
        self._last = row
        self._rows.append(row)
        self._note(index, snapshot.annotations)
        if len(self._rows) == _CHUNK:
            self._flush()

    def finish(self) -> bytes:
        """The deflated stream (zlib). Nothing may be added any more."""
        self._flush()
        if self._numbers:
            columns = [self._filled(name) for name in self._numbers]
            bits = np.array(columns, dtype="<f4").view("<i4").T
            self._put(np.diff(bits, axis=0, prepend=np.zeros_like(bits[:1])))
        self._parts.append(self._deflate.flush())
        return b"".join(self._parts)

    def facts(self) -> dict[str, Any]:
        """Names of the numbers that were noted, and of each word the states where it changes."""
        return {"numbers": list(self._numbers), "words": self._words}

    def _note(self, index: int, annotations: dict[str, Any]) -> None:
        for name, value in annotations.items():
            if isinstance(value, (bool, str)) or name in self._words:
                changes = self._words.setdefault(name, [])
                if not changes or changes[-1][1] != str(value):
                    changes.append([index, str(value)])
            elif isinstance(value, (int, float)):
                self._filled(name, index).append(float(value))

    def _filled(self, name: str, count: int | None = None) -> list[float]:
        """A column of numbers, with NaN for the states up to count (default: all) that say nothing of it."""
        column = self._numbers.setdefault(name, [])
        column.extend([math.nan] * ((self.num_states if count is None else count) - len(column)))
        return column

    def _flush(self) -> None:
        if not self._rows:
            return
        rows, self._rows = np.stack(self._rows), []
        steps = np.rint(rows * ([POS_STEPS] * 3 + [ROT_STEPS] * 4)).astype(np.int32).reshape(len(rows), -1)
        self._put(np.diff(steps, axis=0, prepend=self._last_steps[None]))
        self._last_steps = steps[-1]

    def _put(self, changes: NDArray[np.int32]) -> None:
        """Write (T, C) changes, which may wrap around, as a block."""
        folded = np.ascontiguousarray(((changes << 1) ^ (changes >> 31)).T).view(np.uint32)
        width = max((int(folded.max(initial=0)).bit_length() + 7) // 8, 1)
        planes = folded.astype("<u4").view(np.uint8).reshape(folded.size, 4)[:, :width].T
        self._parts.append(self._deflate.compress(bytes([width]) + planes.tobytes()))
