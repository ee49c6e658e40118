"""Which clips a recording makes, and which camera and environments fill which part of their pictures."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mimickit.video.config import EnvLayout, VideoConfig, ViewLayout

_PIP_SHARE = 0.3  # of the picture's width and height
_PIP_MARGIN = 0.02  # of the height
_EMPTY = 0.4  # what an empty cell of a grid costs


@dataclass(frozen=True)
class Rect:
    """Pixels of a picture, from its upper left corner."""

    left: int
    top: int
    width: int
    height: int

    def split(self, count: int) -> list["Rect"]:
        """A grid of `count` rectangles of nearly one size that fill this one, in reading order.

        The grid is the one whose tiles come nearest to squares. In a last row that isn't full the tiles are wider.
        """
        columns = min(range(1, count + 1), key=lambda n: self._strangeness(n, math.ceil(count / n), count))
        rows = math.ceil(count / columns)
        rects = []
        for row in range(rows):
            top, bottom = row * self.height // rows, (row + 1) * self.height // rows
            across = columns if row < rows - 1 else count - columns * (rows - 1)
            for column in range(across):
                left, right = column * self.width // across, (column + 1) * self.width // across
                rects.append(Rect(self.left + left, self.top + top, right - left, bottom - top))
        return rects

    def _strangeness(self, columns: int, rows: int, count: int) -> float:
        aspect = (self.width / columns) / (self.height / rows)
        return max(aspect, 1.0 / aspect) + _EMPTY * (columns * rows - count)


@dataclass(frozen=True)
class Tile:
    """A part of the picture: one camera on one or several environments."""

    rect: Rect
    camera: str
    subjects: tuple[int, ...]
    """Indices into the moment's snapshots; the camera follows the first, or keeps all in view."""
    label: str | None = None
    """Written in its corner."""
    names: tuple[str, ...] = ()
    """Of several subjects in one scene: what each is called."""


@dataclass(frozen=True)
class ClipLayout:
    """One clip's tiles, and what is added to its name."""

    tiles: tuple[Tile, ...]
    suffix: str = ""


def plan_layouts(config: VideoConfig, env_ids: Sequence[int], labels: Sequence[str] | None = None) -> list[ClipLayout]:
    """The clips of a recording of env_ids; labels, one per environment, are written where several share a film."""
    whole = Rect(0, 0, *config.even_size)
    names = list(labels) if labels is not None else [f"env {env}" for env in env_ids]
    groups = _groups(config, env_ids, names, are_named=labels is not None)
    cameras = config.cameras
    if config.view_layout is ViewLayout.SEPARATE and len(cameras) > 1:
        layouts = [
            ClipLayout(_tiles(group, (camera,), config, whole), suffix + f"_{camera.rpartition(':')[2]}")
            for group, suffix in groups
            for camera in cameras
        ]
    else:
        layouts = [ClipLayout(_tiles(group, cameras, config, whole), suffix) for group, suffix in groups]
    return [replace(layout, tiles=tuple(_named(tile, names) for tile in layout.tiles)) for layout in layouts]


def _named(tile: Tile, names: Sequence[str]) -> Tile:
    """The tile, with the names of its subjects if there are several."""
    return replace(tile, names=tuple(names[i] for i in tile.subjects)) if len(tile.subjects) > 1 else tile


_Group = list[tuple[tuple[int, ...], str | None]]  # of each cell: its environments and its label


def _groups(
    config: VideoConfig, env_ids: Sequence[int], names: Sequence[str], *, are_named: bool
) -> list[tuple[_Group, str]]:
    """For each clip the cells that its picture is divided into, and the suffix of its name."""
    indices = range(len(env_ids))
    if len(env_ids) == 1:
        return [([((0,), None)], "")]
    if config.env_layout is EnvLayout.SEPARATE and are_named:
        return [([((i,), names[i])], "_" + re.sub(r"[^\w.+-]+", "_", names[i])) for i in indices]
    if config.env_layout is EnvLayout.SEPARATE:
        return [([((i,), None)], f"_env{env_ids[i]}") for i in indices]
    if config.env_layout in (EnvLayout.SCENE, EnvLayout.OVERLAID):
        return [([(tuple(indices), None)], "")]
    return [([((i,), names[i]) for i in indices], "")]


def _tiles(cells: _Group, cameras: Sequence[str], config: VideoConfig, whole: Rect) -> tuple[Tile, ...]:
    if len(cells) == 1 or len(cameras) == 1:
        subjects = [(envs, camera, label) for envs, label in cells for camera in cameras]
        is_pip = config.view_layout is ViewLayout.PIP and len(cells) == 1 and len(cameras) > 1
        rects = _pip_rects(whole, len(cameras)) if is_pip else whole.split(len(subjects))
        several = len(cameras) > 1
        return tuple(
            Tile(rect, camera, envs, _label(label, camera if several else None))
            for rect, (envs, camera, label) in zip(rects, subjects, strict=True)
        )
    tiles: list[Tile] = []
    for rect, (envs, label) in zip(whole.split(len(cells)), cells, strict=True):
        inner = _tiles([(envs, label)], cameras, config, rect)
        tiles += inner
    return tuple(tiles)


def _label(*parts: str | None) -> str | None:
    return "  ".join(part.rpartition(":")[2] for part in parts if part) or None


def _pip_rects(whole: Rect, count: int) -> list[Rect]:
    """The whole, and small pictures down its right side."""
    height = min(int(whole.height * _PIP_SHARE), (whole.height - _margin(whole)) // max(count - 1, 1) - _margin(whole))
    width = height * whole.width // whole.height
    margin = _margin(whole)
    left = whole.left + whole.width - margin - width
    small = [Rect(left, whole.top + margin + i * (height + margin), width, height) for i in range(count - 1)]
    return [whole, *small]


def _margin(whole: Rect) -> int:
    return max(2, round(whole.height * _PIP_MARGIN))
