"""Tells callbacks how far a run has come, and brings what they attach into its results."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from mimickit.media.callbacks import Callback, CallbackError, Run, Trainer, call_hook, hook_name, overrides
from mimickit.media.types import MEDIA_KEY, Media, MediaError, is_number, join_media


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
            call_hook(callback, "on_train_start")

    def on_test_start(self) -> None:
        """A test begins."""
        for callback in self._callbacks:
            call_hook(callback, "on_test_start")

    def on_iteration_end(self, result: dict[str, Any]) -> None:
        """An iteration of training has ended."""
        self._hand_on("on_iteration_end", result)

    def on_test_end(self, result: dict[str, Any]) -> None:
        """A test has ended."""
        self._hand_on("on_test_end", result)

    def _hand_on(self, hook: str, result: dict[str, Any]) -> None:
        """Let callbacks add to a result, see that it still is one, and bring what they attach into its media."""
        for callback in self._callbacks:
            if not overrides(callback, hook):
                continue
            before = {**result, MEDIA_KEY: {name: list(items) for name, items in result[MEDIA_KEY].items()}}
            call_hook(callback, hook, result)
            place = hook_name(callback, hook)
            check_result(result, before, place)
            try:
                result[MEDIA_KEY] = self._as_media(result[MEDIA_KEY], before[MEDIA_KEY])
            except MediaError as error:
                raise CallbackError(f"{place}: {error}") from error
        pending, self._run.pending = self._run.pending, {}
        result[MEDIA_KEY] = join_media(result[MEDIA_KEY], pending)

    def _as_media(self, media: Mapping[str, Any], before: Mapping[str, list[Media]]) -> dict[str, list[Media]]:
        """Media of a result, those that a callback put there made files of the run folder."""
        known = {id(item) for items in before.values() for item in items}
        found: dict[str, list[Media]] = {}
        for name, value in media.items():
            stem = f"{name}_{self._run.samples:012d}"
            if isinstance(value, (list, tuple)) and any(id(item) in known for item in value):
                parts = [[item] if id(item) in known else self._run.store.keep(name, item, stem=stem) for item in value]
                found[name] = [item for part in parts for item in part]
            else:
                found[name] = self._run.store.keep(name, value, stem=stem)
        return found


def check_result(result: dict[str, Any], before: Mapping[str, Any], place: str) -> None:
    """See that a hook has left a result whole, and added only what can be logged; numbers are made plain ones.

    Raises:
        CallbackError: naming place, the hook, and the key.
    """
    for key, value in before.items():
        if key not in result:
            raise CallbackError(f"{place}: {key}: expected what was there, found it removed")
        if key != MEDIA_KEY and is_number(value):
            _check_number(result, key, place)
    if not isinstance(result[MEDIA_KEY], Mapping):
        found = type(result[MEDIA_KEY]).__name__
        raise CallbackError(f"{place}: {MEDIA_KEY}: expected a dict of media by their names, found {found}")
    for key in result.keys() - before.keys():
        if not isinstance(key, str) or not key.strip():
            raise CallbackError(f"{place}: expected names of figures, found {key!r}")
        _check_number(result, key, place)


def _check_number(result: dict[str, Any], key: str, place: str) -> None:
    value = result[key]
    with suppress(AttributeError, TypeError, ValueError, RuntimeError):  # more than one number, or none
        value = value.item()
    try:
        if not is_number(value):
            raise TypeError
        float(value)
    except (TypeError, ValueError, OverflowError):
        raise CallbackError(f"{place}: {key}: expected a number, found {_short(result[key])}") from None
    result[key] = value


def _short(value: Any) -> str:
    words = repr(value)
    return words if len(words) <= 60 else f"{type(value).__name__} {words[:60]}..."
