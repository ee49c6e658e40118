"""From the states of a simulation to the frames of a film: at a lower rate, in slow motion, or one for one."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from mimickit.video.snapshot import ActorPose, FloatArray, Moment, Snapshot

_TOLERANCE = 1e-6  # of a frame
_STRAIGHT = 0.9995  # cosine beyond which two quaternions are mixed in a straight line


@dataclass(frozen=True)
class FrameClock:
    """When a state is filmed."""

    dt: float
    """Seconds between two states."""
    fps: float
    """Frames per second of the film."""
    speed: float = 1.0
    """1 real time, 0.25 slow motion."""

    @property
    def frames_per_state(self) -> float:
        """1 or less where frames are states; more in slow motion."""
        return self.fps * self.dt / self.speed

    def count(self, states: int) -> int:
        """How many frames there are of so many states."""
        return 0 if states < 1 else int((states - 1 + _TOLERANCE) * self.frames_per_state) + 1

    def states_of(self, frames: int) -> int:
        """How many states there are when so many frames have been filmed."""
        states = max(0, int((frames - 1) / self.frames_per_state)) if frames else 0
        while self.count(states) < frames:
            states += 1
        return states


class Reel:
    """Turns one moment after the other into the moments of frames."""

    def __init__(self, clock: FrameClock) -> None:
        self._clock = clock
        self._states = 0
        self._last: Moment | None = None
        self._cuts: set[int] = set()  # environments in which a cut has not been on a frame yet

    def feed(self, moment: Moment) -> Iterator[Moment]:
        """The frames up to the state `moment`: none, the state itself, or moments between the last state and it.

        A frame at a rate below that of the states is a state, never a mixture. A cut is not mixed over: the old state
        stands until the new one.
        """
        clock, last, index = self._clock, self._last, self._states
        frames = range(clock.count(index), clock.count(index + 1))
        self._states, self._last = index + 1, moment
        cuts = {i for i, snapshot in enumerate(moment) if snapshot.is_cut}
        is_shown = False
        for frame in frames:
            share = frame / clock.frames_per_state - (index - 1)
            if last is None or clock.frames_per_state <= 1.0 + _TOLERANCE or share > 1.0 - _TOLERANCE:
                self._cuts |= cuts
                is_shown = True
                yield self._marked(moment)
            else:
                yield self._marked(tuple(between(a, b, share) for a, b in zip(last, moment, strict=True)))
        if not is_shown:
            self._cuts |= cuts

    def _marked(self, moment: Moment) -> Moment:
        cuts, self._cuts = self._cuts, set()
        return tuple(s if s.is_cut == (i in cuts) else replace(s, is_cut=i in cuts) for i, s in enumerate(moment))


def between(first: Snapshot, second: Snapshot, share: float) -> Snapshot:
    """The snapshot a share (0..1) of the way from the first to the second; across a cut, the first."""
    time = first.time + share * (second.time - first.time)
    if second.is_cut:
        return replace(first, time=time)
    ghosts = first.ghosts
    if len(first.ghosts) == len(second.ghosts):
        ghosts = [_mix(a, b, share) for a, b in zip(first.ghosts, second.ghosts, strict=True)]
    poses = [_mix(a, b, share) for a, b in zip(first.poses, second.poses, strict=True)]
    return replace(first, time=time, poses=poses, ghosts=ghosts)


def _mix(first: ActorPose, second: ActorPose, share: float) -> ActorPose:
    return first[0] + share * (second[0] - first[0]), _slerp(first[1], second[1], share)


def _slerp(first: FloatArray, second: FloatArray, share: float) -> FloatArray:
    first = first / np.linalg.norm(first, axis=-1, keepdims=True)
    second = second / np.linalg.norm(second, axis=-1, keepdims=True)
    cosine = np.sum(first * second, axis=-1, keepdims=True)
    second, cosine = np.where(cosine < 0.0, -second, second), np.abs(cosine)
    angle = np.arccos(np.clip(cosine, 0.0, 1.0))
    sine = np.maximum(np.sin(angle), 1e-9)
    is_straight = cosine > _STRAIGHT
    a = np.where(is_straight, 1.0 - share, np.sin((1.0 - share) * angle) / sine)
    b = np.where(is_straight, share, np.sin(share * angle) / sine)
    return np.asarray(a * first + b * second)
