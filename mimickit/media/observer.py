"""Tells callbacks how far a run has come, and brings what they attach into its results."""

from collections.abc import Sequence
from typing import Any

from mimickit.media.callbacks import Callback, Run, Trainer
from mimickit.media.types import MEDIA_KEY, Media, join_media


class CallbackObserver:
    """An observer (see learning/observer.py) that hands everything on to callbacks, in their order."""

    def __init__(self, callbacks: Sequence[Callback], run: Run) -> None:
        self._callbacks, self._run = callbacks, run
        for callback in callbacks:
            callback.run = run

    def follow(self, agent: Trainer) -> None:
        """The policy of the run."""
        self._run.agent = agent

    def on_train_start(self) -> None:
        """Training begins, or goes on."""
        self._run.is_training = True
        for callback in self._callbacks:
            callback.on_train_start()

    def on_test_start(self) -> None:
        """A test begins."""
        for callback in self._callbacks:
            callback.on_test_start()

    def on_iteration_end(self, result: dict[str, Any]) -> None:
        """An iteration of training has ended."""
        for callback in self._callbacks:
            callback.on_iteration_end(result)
        self._complete(result)

    def on_test_end(self, result: dict[str, Any]) -> None:
        """A test has ended."""
        for callback in self._callbacks:
            callback.on_test_end(result)
        self._complete(result)

    def _complete(self, result: dict[str, Any]) -> None:
        """Bring media into the result: those that were attached, and those that a callback put there itself."""
        pending, self._run.pending = self._run.pending, {}
        own = {name: self._as_media(name, value) for name, value in result.get(MEDIA_KEY, {}).items()}
        result[MEDIA_KEY] = join_media(own, pending)

    def _as_media(self, name: str, value: Any) -> Sequence[Media]:
        if isinstance(value, list) and all(isinstance(item, Media) for item in value):
            return value
        return self._run.store.keep(name, value, stem=f"{name}_{self._run.samples:012d}")
