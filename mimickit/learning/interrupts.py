"""Ctrl-C between iterations rather than in the middle of one."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class DeferredInterrupt:
    """Holds back the first SIGINT or SIGTERM while a with block runs; its end hands it to the handler it was meant for.

    A second signal goes through at once. Outside the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self) -> None:
        self._previous: dict[int, Any] = {}
        self._pending: tuple[int, FrameType | None] | None = None

    def __enter__(self) -> "DeferredInterrupt":
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                self._previous[number] = signal.signal(number, self._hold)
        return self

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self._pending is not None:
            self._pending = None
            self._deliver(number, frame)
        self._pending = (number, frame)

    def _deliver(self, number: int, frame: FrameType | None) -> None:
        handler = self._previous[number]
        if callable(handler):
            handler(number, frame)
        elif handler == signal.SIG_DFL:
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        pending, self._pending = self._pending, None
        if pending is not None and error is None:
            self._deliver(*pending)
