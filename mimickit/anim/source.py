"""What a character is read from: the text that MuJoCo understands, and the files it refers to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mimickit.util.keys import ConfigError


class CharacterError(ConfigError):
    """A character file that can't be used; the text names the file, the body and the joints."""


@dataclass(frozen=True)
class CharacterSource:
    """A character in a form that needs nothing else: it can be put into a trace and read again anywhere."""

    path: Path
    """The file, as errors name it."""
    text: str
    """MJCF or URDF."""
    files: Mapping[str, Path | bytes] = field(default_factory=dict, repr=False)
    """What the text refers to: mesh/NAME, texture/NAME (of a cube texture/NAME/SIDE), hfield/NAME, skin/NAME by the
    elements' names, include/FILE by the files'."""
