"""The render thread: takes moments from the simulation's thread and makes files of them."""

import contextlib
import queue
import threading
import weakref
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from mimickit.video.errors import VideoError
from mimickit.video.production import Filmer, FilmPlan, Production, Wrap
from mimickit.video.snapshot import Moment

_MAX_WAITING = 64  # orders between the two threads: a few hundred kB of an environment at most
_TRACE_BATCH = 512  # snapshots that are handed over at once where nothing is drawn: writing disturbs the simulation
_ALIVE_CHECK = 1.0  # s


class FilmCrew:
    """Makes one recording after the other on a thread of its own, which starts with the first.

    film() blocks while the crew is more than a few moments behind: memory stays flat and nothing is dropped. What fails
    on the thread ends the recording and is kept in `error`; later moments of that recording are let go.
    """

    def __init__(self, filmer: Filmer) -> None:
        self._work = _Work(filmer)
        self._thread: threading.Thread | None = None
        self._batch: list[Moment] = []
        self._batch_size = 1

    @property
    def error(self) -> Exception | None:
        """What ended the present recording, None while all is well."""
        return self._work.error

    @property
    def film_error(self) -> Exception | None:
        """What ended the present recording's clips while its trace goes on."""
        production = self._work.production
        return None if production is None else production.film_error

    def begin(self, plan: FilmPlan) -> None:
        """Begin a recording; returns at once."""
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work.run, name="film-crew", daemon=True)
            self._thread.start()
            # the thread knows nothing of this object: a crew that is forgotten goes home
            weakref.finalize(self, self._work.orders.put, None).atexit = False
        self._work.error = None
        self._batch, self._batch_size = [], 1
        if not plan.clips:
            self._batch_size = max(1, _TRACE_BATCH // max(len(plan.header.casts), 1))
        self._put(plan)

    def film(self, moment: Moment) -> None:
        """Add a state. The moment belongs to the crew from now on."""
        if self._batch_size == 1:
            self._put([moment])
            return
        if len(self._batch) >= self._batch_size:
            self._hand_over()
        self._batch.append(moment)

    def _hand_over(self) -> None:
        self._put(self._batch)  # Ctrl-C in the wait: they are still there
        self._batch = []

    def finish(self, ending: dict[str, Any] | None = None) -> "Future[Wrap]":
        """End the recording; the future is done when its files are complete. ending is kept in the trace."""
        if self._batch:
            self._hand_over()
        order = _Finish(ending or {})
        self._put(order)
        return order.future

    def close(self) -> None:
        """Free what the crew holds and end its thread; a recording that was not finished stays in parts."""
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


@dataclass
class _Finish:
    """The order to end a recording."""

    ending: dict[str, Any]
    future: "Future[Wrap]" = field(default_factory=Future)


_Order = FilmPlan | list[Moment] | _Finish | None


class _Work:
    """What the render thread does."""

    def __init__(self, filmer: Filmer) -> None:
        self.orders: queue.Queue[_Order] = queue.Queue(_MAX_WAITING)
        self.error: Exception | None = None
        self._filmer = filmer
        self.production: Production | None = None

    def run(self) -> None:
        while (order := self.orders.get()) is not None:
            if isinstance(order, _Finish):
                order.future.set_result(self._wrap(order.ending))
            elif self.error is None:
                try:
                    self._follow(order)
                except Exception as error:  # the recording ends here, the simulation goes on
                    self.error = error
                    self._give_up()
        self._give_up()
        self._filmer.close()

    def _follow(self, order: FilmPlan | list[Moment]) -> None:
        if isinstance(order, FilmPlan):
            self.production = Production(order, self._filmer)
        elif self.production is None:
            raise VideoError("a frame came before its clip")
        else:
            for moment in order:
                self.production.feed(moment)

    def _wrap(self, ending: dict[str, Any]) -> Wrap:
        try:
            if self.error is None and self.production is not None:
                return self.production.wrap(ending)
            return Wrap(error=self.error)
        except Exception as error:  # somebody waits for the answer
            return Wrap(error=error)
        finally:
            self._give_up()

    def _give_up(self) -> None:
        production, self.production = self.production, None
        if production is not None:
            production.give_up()
