"""The dolly: its file, and the way between its key poses."""

from pathlib import Path

import numpy as np
import pytest

from mimickit.util.keys import ConfigError
from mimickit.video.camera import camera_path
from mimickit.video.camera.camera_path import CameraPath, load_camera_path
from mimickit.video.camera.camera_rig import CameraPose, CameraRig, make_camera
from mimickit.video.config import VideoConfig
from tests.video.camera_checks import PLACE, follow

KEYS = """
- {time: 0.5, eye: [4, -3, 1.5], target: [0, 0, 0.9]}
- {time: 1.5, eye: [1, -4, 1.0], target: [1, 0, 0.9], fov: 30}
- {time: 3.0, eye: [0, -2, 2e0], target: [2, 0, 0.5], fov: 60}
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "path.yaml"
    path.write_text(text)
    return path


def film(path: Path, seconds: float, place: np.ndarray = PLACE, **more: object) -> list[CameraPose]:
    rig = CameraRig(VideoConfig(camera="dolly", camera_path=path, fov=50.0))
    return follow(rig, np.tile(place, (round(seconds * 30) + 1, 1)), **more)


def test_the_dolly_is_at_every_key_pose_and_stays_at_the_last(tmp_path: Path) -> None:
    cameras = film(write(tmp_path, KEYS), 5.0, PLACE + 7.0)
    for frame, eye, target, fov in (
        (0, [4, -3, 1.5], [0, 0, 0.9], 50.0),
        (15, [4, -3, 1.5], [0, 0, 0.9], 50.0),
        (45, [1, -4, 1.0], [1, 0, 0.9], 30.0),
        (90, [0, -2, 2.0], [2, 0, 0.5], 60.0),
        (150, [0, -2, 2.0], [2, 0, 0.5], 60.0),
    ):
        assert cameras[frame].eye == pytest.approx(eye)
        assert cameras[frame].target == pytest.approx(target)
        assert cameras[frame].fov == pytest.approx(fov)


def test_the_dolly_starts_and_stops_softly(tmp_path: Path) -> None:
    cameras = film(write(tmp_path, KEYS), 4.0)
    eyes = np.array([camera.eye for camera in cameras])
    speed = np.linalg.norm(np.diff(eyes, axis=0), axis=1) * 30
    assert speed[15] < 0.2 * speed.max()
    assert speed[89] < 0.2 * speed.max()
    assert np.abs(np.diff(speed)).max() < 0.2 * speed.max()
    assert speed[30:60].min() > 0.2  # no stop at the key between


@pytest.mark.parametrize("seed", range(20))
def test_any_path_is_smooth_and_between_two_keys_within_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 8))
    times = np.cumsum(rng.uniform(0.05, 3.0, count))
    path = CameraPath(times, rng.normal(0.0, 3.0, (count, 7)), False)
    fine = np.linspace(times[0] - 0.5, times[-1] + 0.5, 4001)
    found = np.array([np.concatenate((eye, target, [fov])) for eye, target, fov in map(path.at, fine)])
    assert np.isfinite(found).all()
    for i in range(count - 1):
        inside = found[(fine >= times[i]) & (fine <= times[i + 1])]
        low, high = np.minimum(path.values[i], path.values[i + 1]), np.maximum(path.values[i], path.values[i + 1])
        assert (inside >= low - 1e-9).all()
        assert (inside <= high + 1e-9).all()
    h = 1e-6
    for time in times:  # the same speed before and after a key
        before, after = (np.concatenate([*path.at(t + h)[:2]]) - np.concatenate([*path.at(t)[:2]])
                         for t in (time - h, time))  # fmt: skip
        assert np.abs(before - after).max() / h < 1e-2


def test_a_relative_dolly_goes_with_the_subject(tmp_path: Path) -> None:
    path = write(tmp_path, "relative: true\nposes:" + KEYS.replace("\n", "\n  "))
    walk = PLACE + np.arange(91)[:, None] * np.array([2.0 / 30, 0.0, 0.0])
    still = film(path, 3.0)
    moving = follow(CameraRig(VideoConfig(camera="dolly", camera_path=path, fov=50.0)), walk)
    for here, there, root in zip(still, moving, walk, strict=True):
        assert there.eye - here.eye == pytest.approx([root[0], 0.0, 0.0], abs=1e-9)
        assert there.target - here.target == pytest.approx([root[0], 0.0, 0.0], abs=1e-9)


def test_a_dolly_with_one_key_stands(tmp_path: Path) -> None:
    cameras = film(write(tmp_path, "- {time: 1, eye: [1, 2, 3], target: [0, 0, 1]}"), 2.0)
    assert {tuple(camera.eye) for camera in cameras} == {(1.0, 2.0, 3.0)}


def test_the_examples_of_the_documentation_are_read(tmp_path: Path) -> None:
    examples = [block.split("\n\n")[0] for block in (camera_path.__doc__ or "").split("::\n\n")[1:]]
    paths = [load_camera_path(write(tmp_path, text), 45.0) for text in examples]
    assert [len(path.times) for path in paths] == [3, 2]
    assert [path.is_relative for path in paths] == [False, True]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["list of key poses", "None"]),
        ("[]", ["list of key poses", "[]"]),
        ("relative: true", ["list of key poses"]),
        ("relativ: true\nposes: []", ["relativ", "did you mean 'relative'"]),
        ("relative: often\nposes: [1]", ["relative: expected true or false", "often"]),
        ("- 5", ["key 1 of 1", "expected time, eye, target and fov", "5"]),
        ("- {time: 0, eye: [0, 0, 1]}", ["key 1 of 1", "target is missing"]),
        ("- {time: 0, eye: [0, 0, 1], traget: [0, 0, 0]}", ["key 1", "traget", "did you mean 'target'"]),
        ("- {time: 0, eye: [0, 1], target: [0, 0, 0]}", ["key 1", "eye: expected three numbers", "[0, 1]"]),
        ("- {time: 0, eye: 4, target: [0, 0, 0]}", ["key 1", "eye: expected three numbers", "4"]),
        ("- {time: 0, eye: [0, 1, up], target: [0, 0, 0]}", ["key 1", "eye: expected a number", "'up'"]),
        ("- {time: .inf, eye: [0, 1, 2], target: [0, 0, 0]}", ["key 1", "time: expected a finite number", "inf"]),
        ("- {time: 0, eye: [0, 1, 2], target: [0, 0, 0], fov: 0}", ["key 1", "fov: expected 1 to 170 degrees", "0"]),
        ("- {time: 0, eye: [0, 1, 2], target: [0, 1, 2]}", ["key 1", "two different points"]),
        (KEYS.replace("3.0", "1.5"), ["key 3 of 3", "time: expected more than 1.5 s, found 1.5"]),
        ("- {time: 0, eye: [0, 1", ["path.yaml:"]),
    ],
)  # fmt: skip
def test_a_path_that_can_not_be_gone_names_file_and_key(tmp_path: Path, text: str, words: list[str]) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as error:
        make_camera("dolly", config=VideoConfig(camera="dolly", camera_path=path))
    assert all(word in str(error.value) for word in [str(path), *words]), error.value


def test_a_dolly_without_a_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"camera_path: no such file.*absent.yaml"):
        CameraRig(VideoConfig(camera="dolly", camera_path=tmp_path / "absent.yaml"))
    with pytest.raises(ConfigError, match="camera_path is missing"):
        CameraRig(VideoConfig(), "dolly")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"bytes.yaml: can't be read"):
        CameraRig(VideoConfig(camera="dolly", camera_path=tmp_path / "bytes.yaml"))
    with pytest.raises(ConfigError, match="can't be read"):
        CameraRig(VideoConfig(camera="dolly", camera_path=tmp_path))


def test_a_dolly_made_by_name_reads_its_path_when_it_films(tmp_path: Path) -> None:
    config = VideoConfig(camera="dolly", camera_path=write(tmp_path, KEYS))
    rig = CameraRig(config)
    rig._mode = make_camera("dolly")
    assert follow(rig, PLACE[None])[0].eye == pytest.approx([4.0, -3.0, 1.5])
