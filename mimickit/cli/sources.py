"""Configuration blocks, and where each key of them comes from: a file, another file's block, or a flag.

The parts are given a block's values and the name of its file, and blame that file for what they refuse. true_sources()
puts the flag or block in its place that really set the key.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from mimickit.cli.options import Request
from mimickit.util.keys import ConfigError

VIDEO = "video"  # source of the block behind VideoConfig, whose every key has an origin


@dataclass(frozen=True)
class Block:
    """One part's configuration, the file that errors in it are blamed on, and the keys that come from elsewhere."""

    values: dict[str, Any]
    source: str
    origins: Mapping[str, str] = field(default_factory=dict)  # by key, a block's as a.b

    def name(self, key: str) -> str:
        """The name of the class to build, e.g. values['env_name']."""
        if key not in self.values:
            raise ConfigError(f"{self.source}: {key} is missing: expected a name or package.module:Class")
        if not isinstance(self.values[key], str):
            raise ConfigError(
                f"{self.source}: {key}: expected a name or package.module:Class, found {self.values[key]!r}"
            )
        return str(self.values[key])


def flag_origins(request: Request, block: str) -> dict[str, str]:
    """Where the keys that flags such as --env.episode_length set come from."""
    names = [name for name in request.given if name.startswith(f"{block}.")]
    return {name.removeprefix(f"{block}."): request.place(name) for name in names}


def leaf_origins(values: Mapping[str, Any], source: str) -> dict[str, str]:
    """The source for every key of a block of blocks, as a.b.c."""
    origins: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            origins |= {f"{key}.{inner}": place for inner, place in leaf_origins(value, source).items()}
        else:
            origins[key] = source
    return origins


@contextmanager
def true_sources(*blocks: Block | None) -> Iterator[None]:
    """Where a ConfigError names a key of a block that comes from elsewhere, say from where."""
    try:
        yield
    except ConfigError as err:
        text = _traced(str(err), [block for block in blocks if block is not None])
        if text == str(err):
            raise
        raise ConfigError(text) from None


def _traced(text: str, blocks: Sequence[Block]) -> str:
    """An error of the form 'source: key: what is wrong' that names the true source of the keys in it."""
    own = next((block for block in blocks if text.startswith(f"{block.source}: ")), None)
    if own is not None:
        rest = text.removeprefix(f"{own.source}: ")
        key = max((key for key in own.origins if _pattern(key).match(rest)), key=len, default="")
        if key:
            place = own.origins[key]
            # --env.episode_length says the key already
            text = f"{place}: {rest.removeprefix(f'{key}: ') if place.endswith(key) else rest}"
    # other keys may have a part in it; those of filming are words such as env and body, which mean more than them
    heard = [block for block in blocks if block is own or block.source != VIDEO]
    named = (place for block in heard for key, place in block.origins.items() if _pattern(key).search(text))
    others = [place for place in dict.fromkeys(named) if place not in text]
    return f"{text} (see {', '.join(others)})" if others else text


def _pattern(key: str) -> re.Pattern[str]:
    """The ways in which errors name a key a.b: a.b, 'a: b' and "a: unknown key 'b'"."""
    unknown = "(?:unknown key ')?"
    words = rf"(?:\.|: ){unknown}".join(map(re.escape, key.split(".")))
    return re.compile(rf"(?<![\w./-]){unknown}{words}(?![\w/])")
