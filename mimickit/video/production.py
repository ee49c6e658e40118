"""Makes the files of a recording from its moments: the trace, and clips of which each has its cameras and overlays."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.files.frame_writer import Writer, finalize, open_writer
from mimickit.video.files.names import POSTER_SUFFIX, beside, discard_part, part_of
from mimickit.video.files.poster import Poster
from mimickit.video.frame_clock import FrameClock, Reel
from mimickit.video.layout import ClipLayout
from mimickit.video.overlay.overlay import Overlay
from mimickit.video.snapshot import Moment, rounded
from mimickit.video.traces.trace import TraceHeader, TraceWriter


@dataclass(frozen=True)
class ClipPlan:
    """One clip that is to be made."""

    path: Path  # the name of the finished clip, reserved
    layout: ClipLayout


@dataclass(frozen=True)
class FilmPlan:
    """What is to be filmed."""

    config: VideoConfig
    header: TraceHeader
    clock: FrameClock
    width: int  # pixels, even
    height: int  # pixels, even
    clips: Sequence[ClipPlan] = ()
    trace: Path | None = None  # the name of the finished trace


class Filmer(Protocol):
    """Turns moments into pictures; made anywhere, then used on one thread only."""

    def begin(self, plan: FilmPlan) -> None:
        """A recording begins. May raise."""

    def shoot(self, clip: ClipPlan, moment: Moment) -> NDArray[np.uint8]:
        """The picture of a clip, (height, width, 3) uint8 RGB; the array may be the filmer's own. May raise."""

    def close(self) -> None:
        """Free everything."""


@dataclass(frozen=True)
class FinishedClip:
    """A file that is complete."""

    plan: ClipPlan
    path: Path
    num_frames: int
    fps: float
    poster: Path | None = None


@dataclass
class Wrap:
    """How a recording ended."""

    clips: list[FinishedClip] = field(default_factory=list)
    trace: Path | None = None
    notes: list[str] = field(default_factory=list)
    error: Exception | None = None


class Production:
    """One recording on its way into files. All methods are called on one thread and may raise.

    Where there is a trace, a failure of filming ends the clips alone: the trace goes on, to be filmed another time.
    """

    def __init__(self, plan: FilmPlan, filmer: Filmer) -> None:
        self._plan, self._filmer = plan, filmer
        self._reel = Reel(plan.clock)
        self._takes: list[_Take] = []
        self._trace: TraceWriter | None = None
        self.film_error: Exception | None = None  # what ended the clips
        try:
            if plan.trace is not None:
                self._trace = TraceWriter(part_of(plan.trace), plan.header)
            with self._saving_the_trace():
                if plan.clips:
                    filmer.begin(plan)
                for clip in plan.clips:
                    self._takes.append(_Take(plan, clip))
        except Exception:
            self.give_up()
            raise

    def feed(self, moment: Moment) -> None:
        """The next state."""
        if self._trace is not None:
            self._trace.write(moment)
        if self._takes:
            with self._saving_the_trace():
                for shown in self._reel.feed(rounded(moment)):
                    for take in self._takes:
                        take.add(self._filmer, shown)

    @contextlib.contextmanager
    def _saving_the_trace(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self._trace is None:
                raise
            self.film_error = error
            self._drop_clips()

    def wrap(self, ending: dict[str, Any]) -> Wrap:
        """Complete every file. What can't be completed is told in the Wrap, with the rest."""
        wrap = Wrap(error=self.film_error)
        for take in self._takes:
            try:
                wrap.clips.append(take.finish())
                wrap.notes += take.notes
            except Exception as error:
                wrap.error = error
        if self._trace is not None and self._plan.trace is not None:
            try:
                self._trace.close(ending)
                part_of(self._plan.trace).replace(self._plan.trace)
                wrap.trace = self._plan.trace
            except OSError as error:
                wrap.error = VideoError(f"{self._plan.trace}: can't be written: {error.strerror or error}")
            except VideoError as error:
                wrap.error = error
        self.give_up()
        return wrap

    def give_up(self) -> None:
        """Leave what is not complete as it is. Parts in which there is nothing to see are removed."""
        self._drop_clips()
        if self._trace is not None and self._plan.trace is not None:
            self._trace.abort()
            if self._trace.num_states == 0:
                with contextlib.suppress(OSError):
                    part_of(self._plan.trace).unlink(missing_ok=True)

    def _drop_clips(self) -> None:
        for take in self._takes:
            take.abort()
        self._takes = []
        for clip in self._plan.clips:
            _remove_empty(part_of(clip.path))


def _remove_empty(part: Path) -> None:
    with contextlib.suppress(OSError):
        if part.is_dir():
            part.rmdir()
        elif part.exists() and part.stat().st_size == 0:
            part.unlink()


class _Take:
    """One clip on its way into its file."""

    def __init__(self, plan: FilmPlan, clip: ClipPlan) -> None:
        self.plan = clip
        self.notes: list[str] = []
        self._overlay = Overlay(plan.config, clip.layout.tiles, plan.header.facts)
        self._fps = plan.clock.fps
        self._poster = Poster() if plan.config.poster else None
        self._writer: Writer | None = open_writer(
            part_of(clip.path),
            width=plan.width,
            height=plan.height,
            fps=plan.clock.fps,
            quality=plan.config.quality,
            video_format=plan.config.format,
            codec=plan.config.codec,
            hardware=plan.config.hardware,
        )

    def add(self, filmer: Filmer, moment: Moment) -> None:
        assert self._writer is not None
        frame = filmer.shoot(self.plan, moment)
        self._overlay.draw(frame, moment)
        self._writer.write(frame)
        if self._poster is not None:
            self._poster.see(frame)

    def finish(self) -> FinishedClip:
        writer = self._writer
        if writer is None or writer.num_frames == 0:
            raise VideoError(f"{self.plan.path}: nothing was filmed")
        writer.close()
        path = finalize(writer.part, self.plan.path)
        self._writer = None
        self.notes += writer.notes
        poster = None if self._poster is None else self._poster.save(beside(path, POSTER_SUFFIX))
        return FinishedClip(self.plan, path, writer.num_frames, self._fps, poster)

    def abort(self) -> None:
        if self._writer is not None:
            self._writer.abort()
            if self._writer.num_frames == 0:
                discard_part(self._writer.part)
            self._writer = None
