"""Every field is checked when the configuration is made, and the error names it."""

import pytest

from mimickit.util.keys import ConfigError
from mimickit.video.config import GhostMode, Quality, VideoConfig


def test_words_become_values() -> None:
    config = VideoConfig.from_mapping(
        {"enabled": "yes", "width": "640", "fov": "3e1", "quality": "HIGH", "ghost": "beside", "position": "1, -2 3.5"},
        "video.yaml",
    )
    assert (config.enabled, config.width, config.fov) == (True, 640, 30.0)
    assert (config.quality, config.ghost) == (Quality.HIGH, GhostMode.BESIDE)
    assert config.position == (1.0, -2.0, 3.5)


@pytest.mark.parametrize(("word", "mode"), [(False, GhostMode.OFF), (True, GhostMode.ON), ("on", GhostMode.ON)])
def test_yaml_reads_on_and_off_as_booleans(word: object, mode: GhostMode) -> None:
    assert VideoConfig.from_mapping({"ghost": word}, "video.yaml").ghost is mode


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"widht": 640}, ["video.yaml", "widht", "width"]),
        ({"width": 8}, ["video.yaml", "width", "16", "8"]),
        ({"height": 480.5}, ["video.yaml", "height", "480.5"]),
        ({"fps": 0}, ["fps", "0"]),
        ({"fps": "fast"}, ["fps", "fast"]),
        ({"fov": 180}, ["fov", "170", "180"]),
        ({"env": -1}, ["env", "-1"]),
        ({"quality": "drafty"}, ["quality", "drafty", "draft"]),
        ({"ghost": "behind"}, ["ghost", "behind", "beside"]),
        ({"position": [1, 2]}, ["position", "three numbers", "[1, 2]"]),
        ({"position": 3}, ["position", "three numbers", "3"]),
        ({"position": [0, 0, 1], "target": [0, 0, 1]}, ["position and target"]),
        ({"camera": 7}, ["camera", "7"]),
        ({"strict": "maybe"}, ["strict", "maybe"]),
    ],
)
def test_what_can_not_be_meant_is_refused(values: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ConfigError) as error:
        VideoConfig.from_mapping(values, "video.yaml")
    assert all(word in str(error.value) for word in words), error.value


@pytest.mark.parametrize(("asked", "filmed"), [((854, 480), (854, 480)), ((853, 481), (854, 482))])
def test_odd_sizes_are_rounded_up(asked: tuple[int, int], filmed: tuple[int, int]) -> None:
    assert VideoConfig(width=asked[0], height=asked[1]).even_size == filmed
