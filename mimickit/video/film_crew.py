"""The render thread: takes Snapshots from the simulation's thread, draws them and writes the clip."""

import contextlib
import queue
import threading
import weakref
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.frame_writer import FrameWriter, finalize, part_of
from mimickit.video.overlay import draw_line, overlay_text
from mimickit.video.snapshot import ActorSpec, Snapshot

_MAX_WAITING = 64  # snapshots between the two threads: a few hundred kB at most
_ALIVE_CHECK = 1.0  # s


@dataclass(frozen=True)
class ClipPlan:
    """What is to be filmed."""

    config: VideoConfig
    actors: Sequence[ActorSpec]
    path: Path  # the name of the finished clip, reserved
    fps: float  # frames per second
    width: int  # pixels, even
    height: int  # pixels, even


class Filmer(Protocol):
    """Turns snapshots into pictures; made anywhere, then used on the render thread only."""

    def begin(self, plan: ClipPlan) -> None:
        """A clip begins. May raise."""

    def shoot(self, snapshot: Snapshot) -> NDArray[np.uint8]:
        """The picture (height, width, 3) uint8 RGB; the array may be the filmer's own. May raise."""

    def close(self) -> None:
        """Free everything."""


@dataclass
class Wrap:
    """How a clip ended."""

    path: Path | None = None  # the finished file, None if there is none
    num_frames: int = 0
    error: Exception | None = None


class FilmCrew:
    """Films one clip after the other on a thread of its own, which starts with the first clip.

    film() blocks while the crew is more than a few snapshots behind: memory stays flat and nothing is
    dropped. What fails on the thread ends the clip and is kept in `error`; later snapshots of that clip are
    let go.
    """

    def __init__(self, filmer: Filmer) -> None:
        self._work = _Work(filmer)
        self._thread: threading.Thread | None = None

    @property
    def error(self) -> Exception | None:
        """What ended the present clip, None while all is well."""
        return self._work.error

    def begin(self, plan: ClipPlan) -> None:
        """Begin a clip; returns at once."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work.run, name="film-crew", daemon=True)
            self._thread.start()
            # the thread knows nothing of this object: a crew that is forgotten goes home
            weakref.finalize(self, self._work.orders.put, None).atexit = False
        self._work.error = None
        self._put(plan)

    def film(self, snapshot: Snapshot) -> None:
        """Add a frame to the clip. The snapshot belongs to the crew from now on."""
        self._put(snapshot)

    def finish(self) -> "Future[Wrap]":
        """End the clip; the future is done when its file is complete."""
        future: Future[Wrap] = Future()
        self._put(future)
        return future

    def close(self) -> None:
        """Free what the crew holds and end its thread; a clip that was not finished stays a part."""
        if self._thread is not None:
            self._put(None)
            self._thread.join()
            self._thread = None

    def _put(self, order: "_Order") -> None:
        while True:
            if self._thread is None or not self._thread.is_alive():
                raise VideoError("the film crew's thread is gone")
            with contextlib.suppress(queue.Full):
                self._work.orders.put(order, timeout=_ALIVE_CHECK)
                return


_Order = ClipPlan | Snapshot | Future[Wrap] | None


class _Work:
    """What the render thread does."""

    def __init__(self, filmer: Filmer) -> None:
        self.orders: queue.Queue[_Order] = queue.Queue(_MAX_WAITING)
        self.error: Exception | None = None
        self._filmer = filmer
        self._plan: ClipPlan | None = None
        self._writer: FrameWriter | None = None

    def run(self) -> None:
        while (order := self.orders.get()) is not None:
            if isinstance(order, Future):
                try:
                    order.set_result(self._wrap())
                except Exception as error:  # somebody waits for the future
                    order.set_result(Wrap(error=error))
            elif self.error is None:
                try:
                    self._follow(order)
                except Exception as error:  # the clip ends here, the simulation goes on
                    self._give_up(error)
        self._give_up(None)
        self._filmer.close()

    def _follow(self, order: ClipPlan | Snapshot) -> None:
        if isinstance(order, ClipPlan):
            self._plan = order
            self._filmer.begin(order)
            self._writer = FrameWriter(
                part_of(order.path),
                width=order.width,
                height=order.height,
                fps=order.fps,
                quality=order.config.quality,
            )
            return
        if self._plan is None or self._writer is None:
            raise VideoError("a frame came before its clip")
        frame = self._filmer.shoot(order)
        if self._plan.config.overlay:
            draw_line(frame, overlay_text(order.annotations))
        self._writer.write(frame)

    def _wrap(self) -> Wrap:
        plan, writer = self._plan, self._writer
        wrap = Wrap(num_frames=0 if writer is None else writer.num_frames, error=self.error)
        if self.error is None and plan is not None and writer is not None and writer.num_frames:
            try:
                writer.close()
                wrap.path = finalize(writer.part, plan.path)
                self._writer = None
            except Exception as error:
                wrap.error = error
        self._give_up(wrap.error)
        self._plan = None
        return wrap

    def _give_up(self, error: Exception | None) -> None:
        """Leave the clip as it is. A part in which there is nothing to see is removed."""
        self.error = error
        if self._writer is not None:
            self._writer.abort()
        if self._plan is not None and (self._writer is None or self._writer.num_frames == 0):
            with contextlib.suppress(OSError):
                part_of(self._plan.path).unlink(missing_ok=True)
        self._writer = None
