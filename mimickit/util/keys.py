"""Checks on keys and values of configurations: every error names the source, what was found and what was expected."""

import difflib
import math
from collections.abc import Collection, Mapping
from typing import Any


class ConfigError(ValueError):
    """A configuration that can't be used; the message names the file and the key."""


def nearest(name: str, known: Collection[str]) -> str:
    """A hint ': did you mean X?' for a name near a known one, else the list of known names."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(sorted(known))}"


def reject_unknown(config: Mapping[str, Any], known: Collection[str], source: str) -> None:
    """Raise ConfigError for the first key of config that is not known."""
    for key in config:
        if key not in known:
            raise ConfigError(f"{source}: unknown key {key!r}{nearest(str(key), known)}")


def as_float(value: Any, key: str, source: str) -> float:
    """value as a finite float; strings such as '1e-4' (as YAML gives them) are numbers."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ConfigError(f"{source}: {key}: expected a number, found {value!r}") from None
    if math.isnan(number):
        raise ConfigError(f"{source}: {key}: expected a number, found NaN")
    return number


def as_int(value: Any, key: str, source: str) -> int:
    """value as an int; 30.0 and '30' are 30, 30.5 is refused."""
    number = as_float(value, key, source)
    if not number.is_integer():
        raise ConfigError(f"{source}: {key}: expected a whole number, found {value!r}")
    return int(number)


def as_bool(value: Any, key: str, source: str) -> bool:
    """value as a bool; true/false, yes/no, on/off, 1/0 in any case."""
    words = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
    if isinstance(value, bool):
        return value
    found = words.get(str(value).strip().lower())
    if found is None:
        raise ConfigError(f"{source}: {key}: expected true or false, found {value!r}")
    return found


def as_list(value: Any, key: str, source: str, of: str = "values") -> list[Any]:
    """value as a list; of says what of, for the error."""
    if not isinstance(value, (list, tuple)):
        raise ConfigError(f"{source}: {key}: expected a list of {of}, found {value!r}")
    return list(value)


def as_floats(value: Any, key: str, source: str) -> list[float]:
    """value as a list of finite floats."""
    return [as_float(item, key, source) for item in as_list(value, key, source, "numbers")]
