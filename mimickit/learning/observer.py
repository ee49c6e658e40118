"""Who is told how far a run has come. An agent knows no more of callbacks, media and early stops than this."""

from typing import Any, Protocol


class Observer(Protocol):
    """Told of a run's milestones by whoever trains or tests."""

    def on_train_start(self) -> None:
        """Training begins, or goes on."""

    def on_iteration_end(self, result: dict[str, Any]) -> None:
        """An iteration of training has ended; result, its figures and media, may be added to."""

    def on_test_start(self) -> None:
        """A test begins; the environment is not yet in TEST mode."""

    def on_test_end(self, result: dict[str, Any]) -> None:
        """A test has ended; result, its figures and media, may be added to."""


class NoObserver:
    """Nobody."""

    def on_train_start(self) -> None:
        """Nothing."""

    def on_iteration_end(self, result: dict[str, Any]) -> None:
        """Nothing."""

    def on_test_start(self) -> None:
        """Nothing."""

    def on_test_end(self, result: dict[str, Any]) -> None:
        """Nothing."""
