"""Clips in files: what is read, what is refused and how it is told."""

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mimickit.anim.motion import LoopMode, MotionError, load_motion, make_motion, save_motion


def frames(count: int = 5, dofs: int = 3) -> np.ndarray:
    return np.random.default_rng(0).normal(scale=0.1, size=(count, 6 + dofs)).astype(np.float32)


def pickled(tmp_path: Path, **changes: Any) -> Path:
    """A clip as MimicKit writes it, with changes; a value of None leaves the key out."""
    values = {"loop_mode": 1, "fps": 30, "frames": frames().tolist()} | changes
    path = tmp_path / "clip.pkl"
    path.write_bytes(pickle.dumps({key: value for key, value in values.items() if value is not None}))
    return path


def test_a_native_clip_survives_the_way_to_the_disk(tmp_path: Path) -> None:
    motion = make_motion(1, 29.97, frames())
    save_motion(tmp_path / "a.npz", motion)
    again = load_motion(tmp_path / "a.npz")
    assert (again.loop_mode, again.fps, again.num_frames, again.num_dofs) == (LoopMode.WRAP, 29.97, 5, 3)
    np.testing.assert_array_equal(again.frames, motion.frames)
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]
    save_motion(tmp_path / "b.npz", again)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_failed_write_leaves_the_old_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.npz"
    save_motion(path, make_motion(0, 30, frames()))
    before = path.read_bytes()
    monkeypatch.setattr(np, "savez_compressed", lambda file, **_: file.write(b"half") and 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_motion(path, make_motion(0, 60, frames()))
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


@pytest.mark.parametrize("kind", [list, np.asarray, lambda f: [np.asarray(row) for row in f]])
def test_a_mimickit_pickle_is_read(tmp_path: Path, kind: Any) -> None:
    motion = load_motion(pickled(tmp_path, frames=kind(frames().tolist()), fps=np.float32(30), loop_mode=np.int64(0)))
    assert (motion.loop_mode, motion.fps) == (LoopMode.CLAMP, 30.0)
    np.testing.assert_allclose(motion.frames, frames())


def test_the_suffix_does_not_matter(tmp_path: Path) -> None:
    path = pickled(tmp_path).rename(tmp_path / "clip.npz")
    assert load_motion(path).num_frames == 5


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no fps": ({"fps": None}, "missing fps; found loop_mode, frames"),
    "no frames": ({"frames": None}, "missing frames"),
    "no loop mode": ({"loop_mode": None}, "missing loop_mode"),
    "fps 0": ({"fps": 0}, "fps: expected a number of frames a second above 0, found 0"),
    "negative fps": ({"fps": -30.0}, "fps: .* found -30.0"),
    "fps as text": ({"fps": "30"}, "fps: .* found '30'"),
    "fps nan": ({"fps": float("nan")}, "fps: .* found nan"),
    "fps a switch": ({"fps": True}, "fps: .* found True"),
    "fps a list": ({"fps": [30]}, r"fps: .* found \[30\]"),
    "unknown loop mode": ({"loop_mode": 2}, r"loop_mode: expected 0 \(clamp\) or 1 \(wrap\), found 2"),
    "loop mode as text": ({"loop_mode": "wrap"}, "loop_mode: .* found 'wrap'"),
    "zero frames": ({"frames": []}, "frames: expected at least one frame, found none"),
    "one row": ({"frames": [0.0] * 9}, "frames: expected .* frame 0 has 0.0"),
    "too narrow": ({"frames": [[0.0] * 5]}, r"frames: expected 6 \+ dofs numbers a frame"),
    "ragged": ({"frames": [[0.0] * 9, [0.0] * 9, [0.0] * 8]}, "frames: expected 9 .* frame 2 has 8"),
    "text in a frame": ({"frames": [["a"] * 9]}, "frames: expected rows of numbers"),
    "not finite": (
        {"frames": [[0.0] * 9, [float("inf")] * 9]},
        "frames: frame 1 holds a number that is not finite",
    ),
    "flat array": ({"frames": np.zeros(9)}, r"frames: expected .* found \(9,\)"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_value_is_told_with_its_key(tmp_path: Path, case: str) -> None:
    changes, message = REFUSED[case]
    with pytest.raises(MotionError, match=f"clip.pkl: {message}"):
        load_motion(pickled(tmp_path, **changes))


def test_files_that_are_no_clips(tmp_path: Path) -> None:
    with pytest.raises(MotionError, match="no such motion file"):
        load_motion(tmp_path / "none.npz")
    path = tmp_path / "walk.txt"
    path.write_text('\n{"Loop": "wrap", "Frames": []}')
    with pytest.raises(MotionError, match=r"walk\.txt: .*mimickit\.anim\.importers"):
        load_motion(path)
    for content in (b"", b"PK\x03\x04 and no more", b"some text", pickle.dumps([1, 2])):
        path.write_bytes(content)
        with pytest.raises(MotionError, match=r"walk\.txt"):
            load_motion(path)
    path.write_bytes(pickle.dumps({"fps": 30})[:-4])
    with pytest.raises(MotionError, match=r"walk\.txt: not a readable pickle"):
        load_motion(path)
    np.savez(tmp_path / "objects.npz", loop_mode=0, fps=30, frames=np.array([{}], dtype=object))
    with pytest.raises(MotionError, match=r"objects\.npz: not a readable motion archive"):
        load_motion(tmp_path / "objects.npz")
    np.savez(tmp_path / "other.npz", speed=3)
    with pytest.raises(MotionError, match="missing loop_mode, fps, frames; found speed"):
        load_motion(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("name", "content", "found"),
    [
        ("clip.csv", b"time,x,y,z\n0.0,1.0,2.0,3.0\n", r"a file that begins with b'time,x"),
        ("clip.csv", b"0.1,0.2,0.3\n0.1,0.2,0.3\n", r"a file that begins with b'0\.1"),
        ("clip.bvh", b"HIERARCHY\nROOT Hips\n{\n", r"a file that begins with b'HIERARCHY"),
        ("clip.png", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", r"a file that begins with b'\\x89PNG"),
        ("clip.npz", b"", "an empty file"),
        ("clip.txt", b"clip of a walk\nthirty frames\n", None),
    ],
)
def test_a_file_of_another_format_is_told_which_are_read(
    tmp_path: Path, name: str, content: bytes, found: str | None
) -> None:
    (tmp_path / name).write_bytes(content)
    formats = r"expected a clip \(\.npz, or \.pkl: .*\) or a dataset of clips \(\.yaml\)"
    with pytest.raises(MotionError, match=rf"{name}: {formats}, found {found}" if found else rf"{name}: .*{formats}"):
        load_motion(tmp_path / name)


def test_a_sudden_turn_of_the_root_loads_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    values = np.zeros((6, 9))
    values[3:, 5] = np.radians(50.0)
    with caplog.at_level(logging.WARNING, logger="mimickit.anim"):
        motion = load_motion(pickled(tmp_path, frames=values.tolist()))
    assert motion.num_frames == 6
    assert "50 degrees from frame 2 to frame 3" in caplog.text
    caplog.clear()
    values[3:, 5] = np.radians(20.0) + 2.0 * np.pi  # a whole turn more is the same pose
    load_motion(pickled(tmp_path, frames=values.tolist()))
    assert not caplog.records
