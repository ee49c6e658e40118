"""Descriptions of characters (YAML): the file, possibly inside of a Python package, and what it lacks.

    file: robot.urdf                    # beside the description; of a package: inside of its wheel
    packages: {my_robot: ../my_robot}   # folders of the ROS packages that a URDF refers to
    package: mjlab                      # a wheel that pip fetches, its version and SHA-256
    version: 1.6.0
    sha256: 0123...
    drives:                             # joints: regular expressions
      - {joints: [".*_knee"], stiffness: 100, damping: 5, torque_limit: 139, armature: 0.02}
    home: {".*_knee": 0.6}              # rad, of the pose to begin in; the others at zero

robot:NAME is the description data/robots/NAME.yaml.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mimickit.anim.drives import Drive
from mimickit.anim.source import CharacterError
from mimickit.anim.wheels import Wheel, fetch
from mimickit.config import load_yaml, project_root
from mimickit.util.keys import ConfigError, as_float, as_list, nearest, reject_unknown

ROBOT = "robot:"
_KEYS = ("file", "packages", "package", "version", "sha256", "drives", "home")
_GAINS = ("stiffness", "damping", "torque_limit", "armature")


@dataclass(frozen=True)
class Description:
    """A character file and what is said beside it."""

    path: Path
    """What was named."""
    file: Path
    """What holds the character."""
    packages: Mapping[str, Path] = field(default_factory=dict)
    drives: tuple[Drive, ...] = ()
    home: Mapping[str, float] = field(default_factory=dict)

    @property
    def is_made(self) -> bool:
        """Whether somebody wrote it, and not only a character file."""
        return self.path != self.file


def robot_names() -> list[str]:
    """Robots that are known by name."""
    return sorted(file.stem for file in (project_root() / "data" / "robots").glob("*.yaml"))


def find_robot(name: str) -> Path:
    """The description of a robot, robot:NAME; any other name is a path. Raises CharacterError."""
    if not name.startswith(ROBOT):
        return Path(name)
    robot = name.removeprefix(ROBOT)
    if robot not in robot_names():
        raise CharacterError(f"{name}: no robot {robot!r}{nearest(robot, robot_names())}")
    return project_root() / "data" / "robots" / f"{robot}.yaml"


def read_description(path: Path) -> Description:
    """The description in a file, its wheel fetched. Raises CharacterError."""
    try:
        return _read(path, load_yaml(path, "character"))
    except CharacterError:
        raise
    except ConfigError as error:
        raise CharacterError(str(error)) from None


def _read(path: Path, config: Mapping[str, Any]) -> Description:
    source = str(path)
    reject_unknown(config, _KEYS, source)
    if not isinstance(config.get("file"), str):
        raise CharacterError(f"{source}: file: expected the path of a character, found {config.get('file')!r}")
    return Description(
        path,
        _find(path, config),
        {str(name): path.parent / str(folder) for name, folder in _block(config, "packages", source).items()},
        tuple(_drive(entry, f"{source}: drives[{i}]") for i, entry in enumerate(_entries(config, source))),
        {str(name): as_float(angle, f"home: {name}", source) for name, angle in _block(config, "home", source).items()},
    )


def _find(path: Path, config: Mapping[str, Any]) -> Path:
    if "package" not in config:
        file = path.parent / config["file"]
        if not file.is_file():
            raise CharacterError(f"{path}: file: no such character file: {file}")
        return file
    for key in ("package", "version", "sha256"):
        if not isinstance(config.get(key), str):
            raise CharacterError(f"{path}: {key}: expected text in quotes, found {config.get(key)!r}")
    return fetch(Wheel(config["package"], config["version"], config["sha256"]), config["file"], source=str(path))


def _block(config: Mapping[str, Any], key: str, source: str) -> Mapping[str, Any]:
    block = config.get(key) or {}
    if not isinstance(block, Mapping):
        raise CharacterError(f"{source}: {key}: expected 'name: value' lines, found {block!r}")
    return block


def _entries(config: Mapping[str, Any], source: str) -> list[Any]:
    return as_list(config.get("drives") or [], "drives", source, "drives")


def _drive(entry: Any, source: str) -> Drive:
    if not isinstance(entry, Mapping):
        raise CharacterError(f"{source}: expected {{joints: [...], stiffness: ...}}, found {entry!r}")
    reject_unknown(entry, ("joints", *_GAINS), source)
    names = tuple(str(name) for name in as_list(entry.get("joints"), "joints", source, "names of joints"))
    gains = {key: as_float(entry[key], key, source) for key in _GAINS if key in entry}
    for key, value in gains.items():
        if value < 0.0:
            raise CharacterError(f"{source}: {key}: expected 0 or more, found {value:g}")
    return Drive(names, **gains)
