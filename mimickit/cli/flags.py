"""Flags made from the fields of dataclasses, and the words of a command line sorted under them.

A field's type says how a flag is read, its default is the flag's, and the docstring under the field is its
help; so a flag and the setting behind it can't diverge.
"""

import ast
import enum
import inspect
import logging
import re
import sys
import textwrap
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mimickit.config import Word
from mimickit.util.keys import ConfigError, as_bool, as_float, as_int, nearest

LOG = logging.getLogger("mimickit.cli")
COMMAND_LINE = "command line"
BLOCKS = ("engine", "env", "agent")  # --env.episode_length 5 overrides a key of a YAML file
_NUMBER = re.compile(r"-(\d|\.\d|inf\b)")


@dataclass(frozen=True)
class Flag:
    """One flag: its name, how many words it takes, and what the help says."""

    name: str
    hint: Any  # the type of the field behind it
    default: Any
    doc: str
    may_be_bare: bool = False

    @property
    def is_bool(self) -> bool:
        """Whether the bare flag means true."""
        return self.may_be_bare or _core(self.hint) is bool

    @property
    def max_words(self) -> int | None:
        """Greatest number of values; None is any number."""
        args = typing.get_args(_core(self.hint))
        if not args:
            return 1
        return None if args[-1] is Ellipsis else len(args)

    def values_text(self) -> str:
        """What may follow the flag, for help texts."""
        core = _core(self.hint)
        args = typing.get_args(core)
        if args:
            return (
                " ".join([_type_text(args[0])] * len(args))
                if args[-1] is not Ellipsis
                else f"{_type_text(args[0])} ..."
            )
        return _type_text(core)

    def default_text(self) -> str:
        """The default, for help texts; empty where the doc has to say it."""
        value = self.default
        if value is None or value == ():
            return ""
        if isinstance(value, tuple):
            return " ".join(_plain(item) for item in value)
        return _plain(value)


@dataclass(frozen=True)
class Given:
    """The words that followed a flag, and where."""

    words: tuple[str, ...]
    source: str

    @property
    def on_command_line(self) -> bool:
        """Whether the user typed it, rather than an arg file."""
        return self.source == COMMAND_LINE


def _core(hint: Any) -> Any:
    """X of X | None."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        return next(arg for arg in typing.get_args(hint) if arg is not types.NoneType)
    return hint


def _type_text(kind: Any) -> str:
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return "|".join(str(member.value) for member in kind)
    names = {bool: "true|false", int: "N", float: "X", str: "NAME", Path: "PATH"}
    return names.get(kind, "VALUE")


def _plain(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


# ---------------------------------------------------------------------- from dataclasses


def flags_of(cls: type[Any], *, prefix: str = "", leave_out: Sequence[str] = ()) -> list[Flag]:
    """A flag for every field of a dataclass, in order."""
    docs, hints = field_docs(cls), typing.get_type_hints(cls)
    return [
        Flag(
            prefix + field.name, hints[field.name], field.default, docs.get(field.name, ""),
            may_be_bare=field.metadata.get("bare", False),
        )
        for field in fields(cls)
        if field.name not in leave_out
    ]


def field_docs(cls: type[Any]) -> dict[str, str]:
    """The docstrings that stand under the fields of a class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    body = typing.cast(ast.ClassDef, tree.body[0]).body
    docs: dict[str, str] = {}
    for field, below in zip(body, body[1:], strict=False):
        is_field = isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if is_field and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            docs[field.target.id] = " ".join(str(below.value.value).split())  # type: ignore[attr-defined]
    return docs


# ---------------------------------------------------------------------- words -> flags


def sort_words(words: Iterable[Word], flags: Mapping[str, Flag]) -> dict[str, Given]:
    """The values of each flag among words; a flag that stands twice keeps the last values, with a note.

    Raises:
        ConfigError: an unknown flag (with the nearest known one), too many or too few values, a word under no
        flag.
    """
    found: dict[str, Given] = {}
    name, values, source, open_ended = "", [], "", False  # type: str, list[str], str, bool

    def finish() -> None:
        if not name:
            return
        _check_count(name, values, source, flags.get(name))
        if name in found:
            LOG.warning("%s: --%s stands twice; the last one counts: %s", source, name, " ".join(values) or "true")
        found[name] = Given(tuple(values), COMMAND_LINE if source == COMMAND_LINE else source)

    for word in words:
        text = word.text
        if text.startswith("--") and len(text) > 2:
            finish()
            key, equals, value = text[2:].partition("=")
            name, source, open_ended = _known(key, word.source, flags), word.source, not equals
            values = [value] if equals else []
        elif text.startswith("-") and not _NUMBER.match(text):
            raise ConfigError(f"{word.source}: {text!r}: flags begin with --{nearest(text.lstrip('-'), flags)}")
        elif not open_ended:
            raise ConfigError(f"{word.source}: {text!r} stands after no flag that could take it")
        else:
            values.append(text)
    finish()
    return found


def _known(key: str, source: str, flags: Mapping[str, Flag]) -> str:
    block, dot, rest = key.partition(".")
    if dot and block in BLOCKS and rest:
        return key
    name = key.replace("-", "_")
    if name not in flags:
        hint = nearest(name, flags)
        raise ConfigError(f"{source}: unknown flag '--{key}'{hint if 'did you mean' in hint else '; see --help'}")
    return name


def _check_count(name: str, values: Sequence[str], source: str, flag: Flag | None) -> None:
    if flag is None:  # --env.key: a list is several words
        if not values:
            raise ConfigError(f"{source}: --{name}: no value follows")
        return
    if not values and not flag.is_bool:
        raise ConfigError(f"{source}: --{name}: no value follows (expected {flag.values_text()})")
    if any(not value.strip() for value in values):
        raise ConfigError(f"{source}: --{name}: a blank value; leave the flag out to have its default")
    if flag.max_words is not None and len(values) > flag.max_words:
        raise ConfigError(
            f"{source}: --{name}: expected {flag.values_text()}, found {len(values)} values: "
            f"{' '.join(values)} (quote a value that has spaces)"
        )


# ---------------------------------------------------------------------- words -> values


def read_value(flag: Flag, given: Given) -> Any:
    """The value that the words of a flag stand for.

    Raises:
        ConfigError: not a value of the flag's type.
    """
    core, label = _core(flag.hint), f"--{flag.name}"
    args = typing.get_args(core)
    if args:
        return tuple(_read_word(args[0], word, label, given.source) for word in given.words)
    return _read_word(core, given.words[0] if given.words else "true", label, given.source)


def _read_word(kind: Any, word: str, label: str, source: str) -> Any:
    if kind is bool:
        return as_bool(word, label, source)
    if kind is int:
        return sys.maxsize if word.lower() in ("inf", "infinity") else as_int(word, label, source)
    if kind is float:
        return as_float(word, label, source)
    if issubclass(kind, enum.Enum):
        members = {str(member.value): member for member in kind}
        if word.lower() not in members:
            raise ConfigError(f"{source}: {label}: found {word!r}{nearest(word.lower(), members)}")
        return members[word.lower()]
    return kind(word)
