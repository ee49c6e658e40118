"""Pictures in bands of rows. Warp runs a kernel on one core of a CPU, so the bands of a picture are drawn side by side
there; a GPU draws a picture whole.
"""

import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

import warp as wp  # noqa: TID253  (this module is imported by the Newton and Isaac Lab recorders alone)

_PER_CORE = 4  # bands: some hold more to draw than others
_MIN_ROWS = 16  # rows of a band, so that starting it is nothing beside drawing it
_MAX_CORES = 16


class Bands:
    """Cuts pictures into bands, and draws these on all cores."""

    def __init__(self, device: str, cores: int | None = None) -> None:
        """cores: of a CPU, by default those that this process may use."""
        self._cores = min(cores or _cores(), _MAX_CORES) if wp.get_device(device).is_cpu else 1
        self._tasks: queue.SimpleQueue[tuple[Future[None], Callable[[], None]] | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    def of(self, height: int) -> list[tuple[int, int]]:
        """First row and number of rows of each band, from the top down."""
        wanted = _PER_CORE * self._cores if self._cores > 1 else 1
        count = max(1, min(wanted, height // _MIN_ROWS))
        edges = [height * index // count for index in range(count + 1)]
        return [(top, end - top) for top, end in zip(edges, edges[1:], strict=False)]

    def draw(self, bands: Sequence[Callable[[], None]], *, at_once: bool) -> None:
        """Call them all, in any order. at_once: not one after the other, as the first calls must be, which load
        kernels.
        """
        if not at_once or self._cores == 1:
            for band in bands:
                band()
            return
        if not self._threads:
            self._start()
        drawn: list[Future[None]] = [Future() for _ in bands]
        for task in zip(drawn, bands, strict=True):
            self._tasks.put(task)
        wait(drawn)
        for future in drawn:
            future.result()

    def _start(self) -> None:
        # not a ThreadPoolExecutor: that draws nothing more once the program ends, when its last film is finished
        self._threads = [
            threading.Thread(target=self._work, name=f"mimickit-bands-{index}", daemon=True)
            for index in range(self._cores)
        ]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, band = task
            try:
                future.set_result(band())
            except BaseException as error:  # whoever asked for it gets it
                future.set_exception(error)
            del task, future, band

    def close(self) -> None:
        """End the threads; may be called twice. They start again with the next picture."""
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
