"""Which part of the picture shows what."""

import numpy as np
import pytest

from mimickit.video.config import VideoConfig
from mimickit.video.layout import ClipLayout, Rect, plan_layouts


def layouts(env_ids: tuple[int, ...] = (0,), **options: object) -> list[ClipLayout]:
    return plan_layouts(VideoConfig.from_mapping({"envs": env_ids, **options}, "test"), env_ids)


def covered(layout: ClipLayout, width: int, height: int) -> np.ndarray:
    """How many tiles cover each pixel."""
    count = np.zeros((height, width), int)
    for tile in layout.tiles:
        rect = tile.rect
        assert rect.left >= 0
        assert rect.top >= 0
        assert rect.left + rect.width <= width
        assert rect.top + rect.height <= height
        count[rect.top : rect.top + rect.height, rect.left : rect.left + rect.width] += 1
    return count


@pytest.mark.parametrize("count", range(1, 33))
@pytest.mark.parametrize(("width", "height"), [(854, 480), (480, 854), (64, 48)])
def test_a_split_covers_the_picture_once(count: int, width: int, height: int) -> None:
    (layout,) = layouts(tuple(range(count)), width=width, height=height)
    assert len(layout.tiles) == count
    assert np.all(covered(layout, width, height) == 1)
    assert [tile.subjects for tile in layout.tiles] == [(i,) for i in range(count)]


@pytest.mark.parametrize(("count", "columns"), [(2, 2), (3, 3), (4, 2), (6, 3), (8, 4), (9, 3)])
def test_a_split_is_a_grid_of_shapely_tiles(count: int, columns: int) -> None:
    rects = Rect(0, 0, 854, 480).split(count)
    assert len([rect for rect in rects if rect.top == 0]) == columns


def test_one_view_is_one_tile_without_label() -> None:
    (layout,) = layouts()
    assert [(t.camera, t.subjects, t.label) for t in layout.tiles] == [("track", (0,), None)]
    assert layout.suffix == ""


def test_views_share_the_picture_and_say_what_they_are() -> None:
    (layout,) = layouts(views="track,side,top,front")
    assert [tile.label for tile in layout.tiles] == ["track", "side", "top", "front"]
    assert np.all(covered(layout, 854, 480) == 1)


def test_small_pictures_lie_in_the_first_and_apart_from_each_other() -> None:
    (layout,) = layouts(views="track,side,top", view_layout="pip")
    first, *small = layout.tiles
    assert (first.rect.width, first.rect.height) == (854, 480)
    assert covered(layout, 854, 480).max() == 2
    assert all(tile.rect.width < 300 for tile in small)


@pytest.mark.parametrize("count", [2, 5, 9])
def test_many_small_pictures_still_fit(count: int) -> None:
    names = ["track", "side", "front", "top", "orbit", "chase", "still", "first_person", "a:b"][:count]
    (layout,) = layouts(views=tuple(names), view_layout="pip")
    assert covered(layout, 854, 480).max() == 2


def test_separate_clips_have_names_of_their_own() -> None:
    assert [layout.suffix for layout in layouts(views="track,mine:low", view_layout="separate")] == ["_track", "_low"]
    assert [layout.suffix for layout in layouts((0, 7), env_layout="separate")] == ["_env0", "_env7"]
    both = layouts((0, 7), env_layout="separate", views="track,side", view_layout="separate")
    assert [layout.suffix for layout in both] == ["_env0_track", "_env0_side", "_env7_track", "_env7_side"]


def test_environments_in_one_scene_share_a_tile() -> None:
    for name in ("scene", "overlaid"):
        (layout,) = layouts((0, 3, 7), env_layout=name)
        assert [(t.subjects, t.names) for t in layout.tiles] == [((0, 1, 2), ("env 0", "env 3", "env 7"))]


def test_views_of_several_environments_are_split_again() -> None:
    (layout,) = layouts((4, 5), views="track,side")
    assert [(tile.label, tile.subjects) for tile in layout.tiles] == [
        ("env 4  track", (0,)), ("env 4  side", (0,)), ("env 5  track", (1,)), ("env 5  side", (1,)),
    ]  # fmt: skip
    assert np.all(covered(layout, 854, 480) == 1)
