"""Configuration files: arg files, YAML, and where paths are looked up.

Arg files hold the words of a command line, any number a line. ``#`` at the start of a word begins a comment,
quotes (``'`` or ``"``) hold a word with spaces together, a backslash is an ordinary character, and a byte
order mark, indentation and CRLF line ends mean nothing.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mimickit.util.keys import ConfigError

PACKAGE_DIR = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Word:
    """One word of a command line or arg file, and where it stands."""

    text: str
    source: str  # "command line", or "FILE:LINE"


def project_root() -> Path:
    """The folder that holds ``data/`` and ``args/``: the checkout, or the package once it is installed."""
    checkout = PACKAGE_DIR.parent
    return checkout if (checkout / "data").is_dir() else PACKAGE_DIR


def find_path(path: str | Path, what: str) -> Path:
    """An existing path, looked up from the working directory, then from the project root.

    Args:
        path: absolute or relative, ``~`` allowed. what: named in the error, e.g. "--env_config".

    Raises:
        ConfigError: the path exists in neither place.
    """
    given = Path(path).expanduser()
    candidates = list(dict.fromkeys((Path.cwd() / given, project_root() / given)))
    for candidate in candidates:
        if candidate.exists():
            return given if given.exists() else candidate
    raise ConfigError(f"{what}: no such file: {' or '.join(str(path) for path in candidates)}")


# ---------------------------------------------------------------------- arg files


def split_line(line: str, source: str) -> list[Word]:
    """The words of one line of an arg file; a comment ends it."""
    words: list[Word] = []
    text, inside, quote = "", False, ""
    for char in line:
        if quote:
            if char == quote:
                quote = ""
            else:
                text += char
        elif char in "'\"":
            quote, inside = char, True
        elif char.isspace():
            if inside:
                words.append(Word(text, source))
            text, inside = "", False
        elif char == "#" and not inside:
            break
        else:
            text, inside = text + char, True
    if quote:
        raise ConfigError(f"{source}: quote {quote} is not closed: {line.strip()}")
    if inside:
        words.append(Word(text, source))
    return words


def read_arg_file(path: str | Path) -> list[Word]:
    """The words of an arg file in order.

    Raises:
        ConfigError: no such file, not UTF-8 text, or a quote that is not closed.
    """
    file = find_path(path, "--arg_file")
    words: list[Word] = []
    for number, line in enumerate(_read_text(file).splitlines(), start=1):
        words += split_line(line, f"{file}:{number}")
    return words


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: expected text in UTF-8, found other bytes") from None
    except OSError as err:
        raise ConfigError(f"{path}: can't be read: {err.strerror}") from None


# ---------------------------------------------------------------------- YAML


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader that refuses duplicate keys and takes 1e-4 for the number that it is."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key_node, _ in node.value:
            key = str(key_node.value)
            if key in seen and key != "<<":
                raise yaml.MarkedYAMLError(problem=f"key {key!r} stands twice", problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


# YAML 1.1 asks for a dot and a sign in 1.0e-4 and knows no -.5; people write 1e-4.
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?((\d[\d_]*(\.\d*)?|\.\d+)[eE][-+]?\d+|\.\d+)$"),
    list("-+.0123456789"),
)


def parse_yaml(text: str, source: str) -> Any:
    """A YAML document as plain Python values; numbers such as 1e-4 are floats.

    Raises:
        ConfigError: a syntax error or a key that stands twice, with its line.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a subclass of SafeLoader
    except yaml.MarkedYAMLError as err:
        mark = err.problem_mark
        place = f"{source}:{mark.line + 1}" if mark is not None else source
        raise ConfigError(f"{place}: {err.problem or err.context}") from None
    except yaml.YAMLError as err:
        raise ConfigError(f"{source}: not YAML: {err}") from None


def load_yaml(path: str | Path, what: str = "config") -> dict[str, Any]:
    """The mapping in a YAML file; an empty file is an empty mapping.

    Raises:
        ConfigError: no such file, no YAML, or not a mapping of names to values.
    """
    file = find_path(path, what)
    content = parse_yaml(_read_text(file), str(file))
    if content is None:
        return {}
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise ConfigError(f"{file}: expected 'key: value' lines, found {type(content).__name__}")
    return content


def merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A new mapping with the values of base, those of over on top; blocks are merged, lists replaced."""
    merged = dict(base)
    for key, value in over.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def nest(keys: Iterable[str], value: Any) -> dict[str, Any]:
    """{a: {b: value}} for the keys a, b."""
    for key in reversed(list(keys)):
        value = {key: value}
    return dict(value)


def dump_yaml(values: Mapping[str, Any]) -> str:
    """YAML text of plain values, in their order."""
    return yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=True, width=110)
