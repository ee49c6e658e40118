"""Characters read from URDF by MuJoCo, and what it leaves to others: packages, the free root, what is shown.

Every link stays a body, also behind a fixed joint, so that feet and hands can be named.
"""

import logging
import math
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

import mujoco

from mimickit.anim.source import CharacterError, CharacterSource
from mimickit.util.keys import ConfigError, as_float, nearest

_log = logging.getLogger("mimickit.anim")
_FORMATS = (".stl", ".obj", ".msh")  # of meshes, that MuJoCo reads
_HIDDEN = 3  # geom group of collision shapes; 0 to 2 are drawn
_COMPILER = {
    "fusestatic": "false",  # every link is a body
    "discardvisual": "false",
    "strippath": "false",
    # a link without inertia may move if what is fixed to it has some: a root link often has none
    "boundmass": "1e-6",  # kg
    "boundinertia": "1e-9",  # kg m^2
}
_NUMBERS = {
    "xyz", "rpy", "size", "radius", "length", "scale", "lower", "upper", "effort", "damping", "friction", "value",
    "ixx", "ixy", "ixz", "iyy", "iyz", "izz",
}  # fmt: skip
_NOT_NEGATIVE = {
    ("mass", "value"), ("limit", "effort"), ("dynamics", "damping"), ("dynamics", "friction"), ("sphere", "radius"),
    ("cylinder", "radius"), ("cylinder", "length"), ("box", "size"),
}  # fmt: skip
_LISTED = 5  # missing files that an error names


def is_urdf(text: str) -> bool:
    """Whether the text's root element is a robot's."""
    body = re.sub(r"<\?.*?\?>|<!--.*?-->|<!DOCTYPE.*?>", "", text, flags=re.DOTALL)
    return re.match(r"\s*<robot[\s>]", body) is not None


def read_urdf(path: Path, text: str, packages: Mapping[str, Path]) -> CharacterSource:
    """The URDF with its meshes found. packages: folders of ROS packages by name. Raises CharacterError."""
    if "<xacro:" in text or ("xacro" in text and "${" in text):
        raise CharacterError(f"{path}: holds xacro macros: expand them first: 'xacro {path.name} > robot.urdf'")
    try:
        robot = ET.fromstring(text)  # noqa: S314 - expat refuses what would blow up
    except ET.ParseError as error:
        raise CharacterError(f"{path}: not XML: {error}") from None
    try:
        _check(path, robot)
    except ConfigError as error:
        raise CharacterError(str(error)) from None
    files = _find_meshes(path, robot, packages)
    block = robot.find("mujoco")
    block = ET.SubElement(robot, "mujoco") if block is None else block
    compiler = block.find("compiler")
    compiler = ET.SubElement(block, "compiler") if compiler is None else compiler
    compiler.attrib.pop("meshdir", None)  # meshes are found by now
    for key, value in _COMPILER.items():
        compiler.attrib.setdefault(key, value)
    return CharacterSource(path, ET.tostring(robot, encoding="unicode"), files)


def finish_urdf(spec: Any, text: str) -> None:
    """Give the root its free joint, unless the robot is fixed to a link named world, and hide the collision shapes of
    links that have others to show. text: what read_urdf() made, of which spec is.
    """
    if not re.search(r'<link [^>]*name="world"', text):
        for root in spec.worldbody.bodies:
            root.add_freejoint(name=f"{root.name}_free")
    for body in spec.bodies:
        collision = [geom for geom in body.geoms if geom.contype or geom.conaffinity]
        if len(collision) < len(body.geoms):
            for geom in collision:
                geom.group = _HIDDEN
    solid = {geom.meshname for geom in spec.geoms if geom.contype or geom.conaffinity}
    for mesh in spec.meshes:
        if mesh.name not in solid:  # what is only seen may be open or flat
            mesh.inertia = mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL


def _check(path: Path, robot: ET.Element) -> None:
    """What MuJoCo would pass over, or not say where it is."""
    links = _names(path, robot, "link")
    _names(path, robot, "joint")
    for part in [*robot.findall("link"), *robot.findall("joint")]:
        _check_numbers(part, f"{path}: {part.tag} {part.get('name')}")
    hangs: dict[str, tuple[str, str]] = {}  # of a link: its joint, and the link that it hangs on
    for joint in robot.findall("joint"):
        where = f"{path}: joint {joint.get('name')}"
        ends = {end: _end(joint, end) for end in ("parent", "child")}
        for end, name in ends.items():
            if not name:
                raise CharacterError(f"{where}: expected <{end} link=...>, found none")
            if name not in links:
                raise CharacterError(f"{where}: {end}: no link {name!r}{nearest(name, links)}")
        if joint.get("type") == "revolute":
            _check_limit(joint, where)
        mimic = joint.find("mimic")
        if mimic is not None:
            _log.warning("%s: doesn't follow %s here but has a drive of its own", where, mimic.get("joint"))
            joint.remove(mimic)
        if ends["child"] in hangs:
            other = hangs[ends["child"]][0]
            raise CharacterError(f"{where}: link {ends['child']!r} hangs on {other} already: expected a tree")
        hangs[ends["child"]] = joint.get("name", ""), ends["parent"]
    try:
        TopologicalSorter({link: [above] for link, (_, above) in hangs.items()}).prepare()
    except CycleError as error:
        ring = " -> ".join(reversed(error.args[1]))
        raise CharacterError(f"{path}: links hang on each other in a ring: {ring}") from None


def _end(joint: ET.Element, end: str) -> str:
    """The link at the end "parent" or "child", empty where none is given."""
    element = joint.find(end)
    return "" if element is None else element.get("link", "")


def _check_numbers(part: ET.Element, where: str) -> None:
    """Of a link or a joint: MuJoCo takes what is not finite, and drops signs."""
    for element in part.iter():
        for key in _NUMBERS & set(element.keys()):
            for word in element.get(key, "").split():
                number = as_float(word, f"{element.tag} {key}", where)
                if math.isinf(number) and element.tag != "limit":  # which may be none
                    raise CharacterError(f"{where}: {element.tag} {key}: expected a finite number, found {word}")
                if number < 0.0 and (element.tag, key) in _NOT_NEGATIVE:
                    raise CharacterError(f"{where}: {element.tag} {key}: expected 0 or more, found {word}")


def _names(path: Path, robot: ET.Element, kind: str) -> set[str]:
    found: set[str] = set()
    for element in robot.findall(kind):
        name = element.get("name", "")
        if not name or name in found:
            raise CharacterError(f"{path}: {kind} {name!r}: expected a name that no other {kind} has")
        found.add(name)
    return found


def _check_limit(joint: ET.Element, where: str) -> None:
    limit = joint.find("limit")
    given = {} if limit is None else limit.attrib
    found = [as_float(given.get(key, 0.0), key, where) for key in ("lower", "upper")]
    if found[0] >= found[1]:
        raise CharacterError(
            f"{where}: expected a limit with lower below upper (rad), found {found}; a joint "
            "that turns without end is of type continuous, one that doesn't turn is fixed"
        )


# ---------------------------------------------------------------------- meshes


def _find_meshes(path: Path, robot: ET.Element, packages: Mapping[str, Path]) -> dict[str, Path | bytes]:
    """Rename every mesh to a name of its own, under which it is in the result. Raises CharacterError for those that
    aren't there.
    """
    names: dict[tuple[str, str], str] = {}
    files: dict[str, Path | bytes] = {}
    missing: list[str] = []
    for link in robot.iter("link"):
        for part, mesh in list(_meshes_of(link)):
            given = mesh.get("filename", "")
            if not _is_readable(path, link, part, given):
                link.remove(part)
                continue
            key = (given, mesh.get("scale", ""))  # MuJoCo tells meshes apart by their file's name alone
            if key not in names:
                places = list(_places(path, robot, given, packages))
                found = next((place for place in places if place.is_file()), None)
                if found is None:
                    looked = ", ".join(str(place) for place in places)
                    missing.append(f"link {link.get('name')}: mesh {given!r}: no such file: {looked}")
                    continue
                names[key] = f"{len(names)}_{found.name}"
                files[f"mesh/{Path(names[key]).stem}"] = found.resolve()
            mesh.set("filename", names[key])
    if missing:
        more = f" (and {len(missing) - _LISTED} more)" if len(missing) > _LISTED else ""
        raise CharacterError(f"{path}: {'; '.join(missing[:_LISTED])}{more}")
    return files


def _meshes_of(link: ET.Element) -> Iterator[tuple[ET.Element, ET.Element]]:
    """Pairs of a visual or collision element and its mesh."""
    for part in link:
        if part.tag in ("visual", "collision"):
            mesh = part.find("geometry/mesh")
            if mesh is not None:
                yield part, mesh


def _is_readable(path: Path, link: ET.Element, part: ET.Element, given: str) -> bool:
    """Whether the mesh's format is known; of a visual one that isn't, the collision shape is shown in its place."""
    if Path(given).suffix.lower() in _FORMATS:
        return True
    name = link.get("name")
    what = f"{path}: link {name}: mesh {given!r}: expected a format that MuJoCo reads ({', '.join(_FORMATS)})"
    if part.tag == "collision":
        raise CharacterError(f"{what}; convert it, for instance with the Python package trimesh")
    _log.warning("%s; the link is drawn as its collision shape", what)
    return False


def _places(path: Path, robot: ET.Element, given: str, packages: Mapping[str, Path]) -> Iterator[Path]:
    """Where the file may be, in the order of looking."""
    if given.startswith("file://"):
        yield Path(given.removeprefix("file://"))
        return
    folder = path.resolve().parent
    if not given.startswith(("package://", "model://")):
        yield folder / given
        compiler = robot.find("mujoco/compiler")
        if compiler is not None and compiler.get("meshdir"):
            yield folder / compiler.get("meshdir", "") / given
        return
    package, _, rest = given.split("://", 1)[1].partition("/")
    if package in packages:
        yield packages[package] / rest
        return
    for above in (folder, *folder.parents):
        if above.name == package:
            yield above / rest
        yield above / package / rest
    for variable, inside in (("ROS_PACKAGE_PATH", ""), ("AMENT_PREFIX_PATH", "share")):
        for entry in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(entry) / inside / package / rest
    for above in (folder, folder.parent):  # a checkout whose folder has another name than the package
        yield above / rest
