"""Finds what a configuration names as package.module:Name."""

import importlib
import sys
from typing import Any

from mimickit.util.keys import ConfigError


def load_object(path: str, source: str = "config") -> Any:
    """The object named by ``package.module:Name``; modules in the working directory are found too.

    Raises:
        ConfigError: no such module, or no such name in it. An error inside the module itself goes through.
    """
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path:  # the working directory, which only python -m puts there
        sys.path.append("")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as err:
        if err.name is None or not (module_name == err.name or module_name.startswith(f"{err.name}.")):
            raise  # something that the module itself imports is missing: its own error says what
        raise ConfigError(f"{source}: {path!r}: no module named {err.name!r}") from None
    found = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"{source}: {path!r}: module {module_name!r} has no {attribute!r}") from None
    return found
