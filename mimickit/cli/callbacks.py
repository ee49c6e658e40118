"""Which callbacks a run has, and their options: from --callbacks, else from the agent's file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mimickit.cli.settings import Settings
from mimickit.config import parse_yaml
from mimickit.util.keys import ConfigError, as_list

KEY = "callbacks"  # of an agent's file


@dataclass(frozen=True)
class CallbackSpec:
    """One callback: a name of the registry or package.module:Class, and arguments of its __init__."""

    name: str
    source: str  # for errors
    options: Mapping[str, Any] = field(default_factory=dict)


def callback_specs(settings: Settings) -> list[CallbackSpec]:
    """The callbacks that were asked for, in their order. Raises ConfigError."""
    if settings.options.callbacks:
        return _of_words(settings.options.callbacks, settings.request.place("callbacks"))
    if settings.agent is None or settings.agent.values.get(KEY) is None:
        return []
    source = settings.agent.source
    entries = settings.agent.values[KEY]
    entries = entries if isinstance(entries, (list, tuple)) else [entries]
    return [_of_entry(entry, source) for entry in as_list(entries, KEY, source)]


def _of_words(words: Sequence[str], source: str) -> list[CallbackSpec]:
    """Names, each followed by its options as key=value."""
    specs: list[CallbackSpec] = []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            specs.append(CallbackSpec(word, source))
            continue
        if not specs or not key.isidentifier():
            raise ConfigError(f"{source}: expected a callback before its options as key=value, found {word!r}")
        last = specs[-1]
        specs[-1] = CallbackSpec(last.name, source, {**last.options, key: parse_yaml(value, f"{source}: {key}")})
    return specs


def _of_entry(entry: Any, source: str) -> CallbackSpec:
    """An entry of a YAML list: a name, or {name: options}."""
    place = f"{source}: {KEY}"
    if isinstance(entry, str):
        return CallbackSpec(entry, place)
    if isinstance(entry, Mapping) and len(entry) == 1:
        name, options = next(iter(entry.items()))
        if options is None or (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
            return CallbackSpec(str(name), place, options or {})
    raise ConfigError(f"{place}: expected a name or {{name: {{option: value}}}}, found {entry!r}")
