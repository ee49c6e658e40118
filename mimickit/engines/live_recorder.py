"""A recorder for cameras that see the simulation itself, and so have to be asked on its thread, at the moment."""

from typing import Any

from mimickit.engines.video_recorder import FilmedEngine, VideoRecorder
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.production import ClipPlan, Filmer, FilmPlan
from mimickit.video.snapshot import Moment, rounded
from mimickit.video.stage.stage import Frame


class LiveRecorder(VideoRecorder):
    """Pictures are taken when a state is seen; the film crew's thread overlays and encodes them."""

    def __init__(self, engine: FilmedEngine, config: VideoConfig, filmer: Filmer) -> None:
        """filmer: what takes the pictures."""
        super().__init__(engine, config)
        self._live = LiveFilmer(filmer)

    def _make_filmer(self) -> Filmer:
        return self._live

    def start(self, *args: Any, **overrides: Any) -> None:
        super().start(*args, **overrides)
        if self._recording:
            self._try(self._live.open, self._plan)

    def close(self) -> None:
        super().close()
        self._live.release()

    def _capture(self, is_start: bool) -> None:
        super()._capture(is_start)
        if self._tape.pending is not None:
            self._live.take(self._tape.pending)


class LiveFilmer:
    """A Filmer that hands out the pictures which were taken; they are as few as moments wait for the film crew."""

    def __init__(self, filmer: Filmer) -> None:
        self._filmer = filmer
        self._clips: tuple[ClipPlan, ...] = ()
        self._taken: dict[int, dict[ClipPlan, Frame]] = {}  # by the moments' steps

    def open(self, plan: FilmPlan) -> None:
        """A recording begins; on the simulation's thread."""
        self._clips, self._taken = tuple(plan.clips), {}
        if self._clips:
            self._filmer.begin(plan)

    def take(self, moment: Moment) -> None:
        """Take the pictures of the present state; on the simulation's thread."""
        seen = rounded(moment)
        self._taken[moment[0].step] = {clip: self._filmer.shoot(clip, seen).copy() for clip in self._clips}

    def begin(self, plan: FilmPlan) -> None:
        """The film crew begins; what there is to begin was begun by open()."""

    def shoot(self, clip: ClipPlan, moment: Moment) -> Frame:
        """The picture of the moment's state, or of the last before it; the array is the caller's to draw on."""
        for step in [step for step in self._taken if step < moment[0].step - 1]:
            del self._taken[step]
        steps = [step for step in self._taken if step <= moment[0].step]
        if not steps:
            raise VideoError(f"no picture was taken of step {moment[0].step}")
        return self._taken[max(steps)][clip].copy()

    def close(self) -> None:
        """The film crew goes; what takes the pictures belongs to the simulation's thread."""

    def release(self) -> None:
        """Free everything; on the simulation's thread."""
        self._taken = {}
        self._filmer.close()
