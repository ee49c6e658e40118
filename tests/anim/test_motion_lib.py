"""Clips sampled at any time: length, loops, velocities, weights."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from mimickit.anim.char_model import CharModel
from mimickit.anim.motion import LoopMode, MotionError, load_motion, make_motion, save_motion
from mimickit.anim.motion_lib import MotionLib
from mimickit.util.rotations import (
    exp_map_to_quat,
    heading,
    quat_conjugate,
    quat_diff_angle,
    quat_mul,
    quat_rotate,
    quat_to_exp_map,
    slerp,
)

CLIPS = Path("data/motions/humanoid")
DOFS = 28


@pytest.fixture(scope="module")
def char() -> CharModel:
    return CharModel.from_file(Path(__file__).parents[2] / "data/assets/humanoid/humanoid.xml")


def wavy(count: int, *, seed: int = 0, scale: float = 0.5) -> np.ndarray:
    """Smooth random frames (count, 34), one slow wave a number."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 1.0, count)[:, None]
    return scale * np.sin(2.0 * np.pi * (t * rng.uniform(0.3, 1.0, 34) + rng.uniform(size=34)))


def write(folder: Path, frames: np.ndarray, *, loop: LoopMode, fps: float = 30.0, name: str = "c") -> Path:
    path = folder / f"{name}.npz"
    save_motion(path, make_motion(loop, fps, frames))
    return path


def at(lib: MotionLib, *times: float, clip: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.full((len(times),), clip), torch.tensor(times, dtype=torch.float32)


def circle(turn: float, *, count: int = 31, radius: float = 2.0) -> np.ndarray:
    """Frames of a walk along a circle, heading along the path; one round of the loop turns by `turn` rad."""
    angle = np.linspace(0.0, turn, count)
    frames = np.zeros((count, 6 + DOFS))
    frames[:, 0] = 3.0 + radius * np.sin(angle)
    frames[:, 1] = -1.0 + radius * (1.0 - np.cos(angle))
    frames[:, 2] = 0.9
    frames[:, 5] = angle
    frames[:, 8] = 0.3 * np.sin(np.linspace(0.0, 2.0 * np.pi, count))
    return frames


@pytest.mark.parametrize("loop", LoopMode)
def test_one_frame_is_a_static_pose(tmp_path: Path, char: CharModel, loop: LoopMode) -> None:
    lib = MotionLib(write(tmp_path, wavy(9)[:1], loop=loop), char)
    ids, times = at(lib, -1.0, 0.0, 0.3, 100.0)
    frame = lib.frame(ids, times)
    assert float(lib.lengths[0]) == 0.0
    for value in vars(frame).values():
        assert torch.isfinite(value).all()
        torch.testing.assert_close(value, value[:1].expand_as(value))
    for value in (frame.root_vel, frame.root_ang_vel, frame.dof_vel):
        assert not value.any()
    torch.testing.assert_close(frame.root_pos[0], torch.tensor(wavy(9)[0, :3], dtype=torch.float32))
    assert not lib.calc_phase(ids, times).any()
    generator = torch.Generator().manual_seed(0)
    assert not lib.sample_time(ids, generator).any()


def test_frames_are_met_and_slerped_between(tmp_path: Path, char: CharModel) -> None:
    values = wavy(20)
    lib = MotionLib(write(tmp_path, values, loop=LoopMode.CLAMP, fps=24.5), char)
    ids, times = at(lib, *(i / 24.5 for i in range(20)))
    frame = lib.frame(ids, times)
    expected = torch.tensor(values, dtype=torch.float32)
    torch.testing.assert_close(frame.root_pos, expected[:, :3], atol=1e-5, rtol=0.0)
    torch.testing.assert_close(char.rot_to_dof(frame.joint_rot), expected[:, 6:], atol=1e-4, rtol=0.0)
    root_rot = exp_map_to_quat(expected[:, 3:6])
    assert quat_diff_angle(frame.root_rot, root_rot).max() < 1e-3
    between = lib.frame(ids[:-1], times[:-1] + 0.3 / 24.5)
    part = torch.tensor(0.3).expand(19)
    assert quat_diff_angle(between.root_rot, slerp(root_rot[:-1], root_rot[1:], part)).max() < 1e-3
    joint_rot = char.dof_to_rot(expected[:, 6:])
    mixed = slerp(joint_rot[:-1], joint_rot[1:], part.view(-1, 1, 1))
    assert quat_diff_angle(between.joint_rot, mixed).max() < 1e-3
    torch.testing.assert_close(between.root_rot.norm(dim=-1), torch.ones(19))


def test_the_rate_of_a_clip_does_not_change_its_length(tmp_path: Path, char: CharModel) -> None:
    """100 fps in a 30 Hz loop: after n control steps the clip is n / 30 s further."""
    frames = np.zeros((251, 6 + DOFS))
    frames[:, 0] = np.arange(251) / 100.0  # 1 m/s
    lib = MotionLib(write(tmp_path, frames, loop=LoopMode.CLAMP, fps=100.0), char)
    assert float(lib.lengths[0]) == pytest.approx(2.5)
    ids, times = at(lib, *(n / 30.0 for n in range(76)))
    torch.testing.assert_close(lib.frame(ids, times).root_pos[:, 0], times.clamp_max(2.5), atol=1e-5, rtol=0.0)
    torch.testing.assert_close(lib.calc_phase(ids, times)[-1], torch.tensor(1.0))


def test_a_clamped_clip_holds_its_end(tmp_path: Path, char: CharModel) -> None:
    lib = MotionLib(write(tmp_path, wavy(31), loop=LoopMode.CLAMP), char)
    frame = lib.frame(*at(lib, 0.0, 1.0, 1.01, 50.0, -0.5))
    for row in (2, 3):
        torch.testing.assert_close(frame.root_pos[row], frame.root_pos[1], atol=1e-6, rtol=0.0)
        torch.testing.assert_close(frame.joint_rot[row], frame.joint_rot[1], atol=1e-6, rtol=0.0)
        assert not frame.dof_vel[row].any()
        assert not frame.root_vel[row].any()
        assert not frame.root_ang_vel[row].any()
    assert frame.dof_vel[0].any()
    assert frame.dof_vel[1].any()
    torch.testing.assert_close(frame.root_pos[4], frame.root_pos[0])
    torch.testing.assert_close(
        lib.calc_phase(*at(lib, -1.0, 0.25, 7.0)), torch.tensor([0.0, 0.25, 1.0]), atol=1e-6, rtol=0.0
    )


@pytest.mark.parametrize("turn", [0.0, 0.3, -0.7, math.pi / 2, 2.0])
def test_a_wrapped_clip_goes_on_where_it_ended_and_facing_that_way(
    tmp_path: Path, char: CharModel, turn: float
) -> None:
    """A walk on a circle must stay on that circle for many rounds of the loop, backwards too."""
    frames = circle(turn)
    if turn == 0.0:
        frames[:, 0] += np.linspace(0.0, 1.5, 31)
    lib = MotionLib(write(tmp_path, frames, loop=LoopMode.WRAP), char)
    ids, times = at(lib, *np.linspace(-3.0, 9.0, 241))
    frame = lib.frame(ids, times)
    along = turn * times
    if turn == 0.0:
        expected = torch.stack((3.0 + 1.5 * times, -torch.ones_like(times)), dim=-1)
        speed = torch.tensor([1.5, 0.0, 0.0]).expand(len(times), 3)
    else:
        expected = torch.stack((3.0 + 2.0 * torch.sin(along), 1.0 - 2.0 * torch.cos(along)), dim=-1)
        speed = 2.0 * turn * torch.stack((torch.cos(along), torch.sin(along), torch.zeros_like(along)), dim=-1)
    torch.testing.assert_close(frame.root_pos[:, :2], expected, atol=2e-3, rtol=0.0)
    torch.testing.assert_close(frame.root_pos[:, 2], torch.full_like(times, 0.9))
    torch.testing.assert_close(frame.root_vel, speed, atol=1e-2, rtol=0.0)
    torch.testing.assert_close(torch.sin(heading(frame.root_rot) - along), torch.zeros_like(along), atol=1e-4, rtol=0)
    torch.testing.assert_close(frame.root_ang_vel[:, 2], torch.full_like(times, turn), atol=1e-3, rtol=0.0)
    torch.testing.assert_close(
        lib.calc_phase(*at(lib, -0.25, 0.25, 7.5)), torch.tensor([0.75, 0.25, 0.5]), atol=1e-5, rtol=0.0
    )


def test_a_tilted_root_wraps_about_the_vertical(tmp_path: Path, char: CharModel) -> None:
    """With the root's x axis straight up it has no heading; the turn of the loop is found all the same."""
    frames = circle(0.4)
    up = exp_map_to_quat(torch.tensor([0.0, -math.pi / 2.0, 0.0], dtype=torch.float64))
    yaw = exp_map_to_quat(torch.from_numpy(frames[:, 3:6]))
    frames[:, 3:6] = quat_to_exp_map(quat_mul(yaw, up)).numpy()
    lib = MotionLib(write(tmp_path, frames, loop=LoopMode.WRAP), char)
    frame = lib.frame(*at(lib, 0.0, 5.0))
    turned = quat_to_exp_map(quat_mul(frame.root_rot[1], quat_conjugate(frame.root_rot[0])))
    torch.testing.assert_close(turned, torch.tensor([0.0, 0.0, 2.0]), atol=1e-3, rtol=0.0)


@pytest.mark.parametrize("loop", LoopMode)
def test_velocities_are_those_of_the_poses(tmp_path: Path, char: CharModel, loop: LoopMode) -> None:
    lib = MotionLib(write(tmp_path, wavy(121), loop=loop, fps=60.0), char)
    h = 1.0 / 60.0
    ids, times = at(lib, *np.arange(0.1, 1.9, 0.05))
    before, now, after = (lib.frame(ids, times + d) for d in (-h, 0.0, h))
    torch.testing.assert_close(now.root_vel, (after.root_pos - before.root_pos) / (2 * h), atol=1e-2, rtol=0)
    spin = quat_to_exp_map(quat_mul(after.root_rot, quat_conjugate(before.root_rot))) / (2.0 * h)
    torch.testing.assert_close(now.root_ang_vel, spin, atol=2e-2, rtol=0.0)
    dof_vel = char.dof_vel(before.joint_rot, after.joint_rot, 2.0 * h)
    torch.testing.assert_close(now.dof_vel, dof_vel, atol=3e-2, rtol=0.0)


def test_any_leading_shape(tmp_path: Path, char: CharModel) -> None:
    lib = MotionLib(write(tmp_path, wavy(31), loop=LoopMode.WRAP), char)
    times = torch.rand(4, 3) * 5.0
    shaped = lib.frame(torch.zeros(4, 1, dtype=torch.int64), times)
    flat = lib.frame(torch.zeros(12, dtype=torch.int64), times.reshape(-1))
    for name, value in vars(flat).items():
        torch.testing.assert_close(getattr(shaped, name).reshape(value.shape), value)
    assert shaped.joint_rot.shape == (4, 3, 14, 4)
    assert lib.frame(torch.tensor(0), torch.tensor(0.5)).dof_vel.shape == (28,)


def test_clips_of_a_dataset_keep_apart(tmp_path: Path, char: CharModel) -> None:
    for name, loop in (("a", LoopMode.CLAMP), ("b", LoopMode.WRAP), ("c", LoopMode.CLAMP)):
        write(tmp_path, wavy(10 + ord(name) % 7, seed=ord(name)), loop=loop, name=name, fps=20.0 + ord(name) % 9)
    write(tmp_path, wavy(1), loop=LoopMode.WRAP, name="d")
    dataset = tmp_path / "all.yaml"
    dataset.write_text("motions:\n" + "".join(f"  - {{file: {n}.npz}}\n" for n in "abcd"))
    lib = MotionLib(dataset, char)
    ids = torch.arange(4).repeat(50)
    times = torch.rand(200, generator=torch.Generator().manual_seed(1)) * 2.0
    frame = lib.frame(ids, times)
    for i, name in enumerate("abcd"):
        alone = MotionLib(tmp_path / f"{name}.npz", char).frame(torch.zeros(50, dtype=torch.int64), times[ids == i])
        for key, value in vars(alone).items():
            torch.testing.assert_close(getattr(frame, key)[ids == i], value)
    assert lib.num_motions == 4
    assert [file.name for file in lib.motion_files] == ["a.npz", "b.npz", "c.npz", "d.npz"]
    assert lib.loop_modes.tolist() == [0, 1, 0, 1]


def test_sampling_follows_weights_and_generator(tmp_path: Path, char: CharModel) -> None:
    for name in "abc":
        write(tmp_path, wavy(31), loop=LoopMode.CLAMP, name=name)
    dataset = tmp_path / "set.yml"
    dataset.write_text("motions: [{file: a.npz, weight: 3}, {file: b.npz, weight: 0}, {file: c.npz, weight: 1e0}]")
    lib = MotionLib(dataset, char)
    ids = lib.sample_motions(4000, torch.Generator().manual_seed(3))
    counts = torch.bincount(ids, minlength=3)
    assert counts[1] == 0
    assert abs(int(counts[0]) - 3000) < 150
    assert torch.equal(ids, lib.sample_motions(4000, torch.Generator().manual_seed(3)))
    times = lib.sample_time(ids, torch.Generator().manual_seed(4), truncate=0.25)
    assert times.min() >= 0.0
    assert 0.7 < times.max() <= 0.75
    assert not lib.sample_time(ids, torch.Generator().manual_seed(4), truncate=5.0).any()


@pytest.mark.parametrize("off", [-1, 1])
def test_a_clip_of_another_character_is_refused(tmp_path: Path, char: CharModel, off: int) -> None:
    path = write(tmp_path, np.zeros((3, 6 + DOFS + off)), loop=LoopMode.CLAMP)
    with pytest.raises(MotionError, match=rf"c\.npz.*expected 34 .* 28 dofs of .*humanoid\.xml\), found {34 + off}"):
        MotionLib(path, char)


DATASETS = {
    "": "expected 'motions",
    "[]": "expected 'motions",
    "motions:": "motions: expected at least one clip, found None",
    "motions: []": "motions: expected at least one clip",
    "motions: {file: c.npz}": "motions: expected at least one clip",
    "motions: [c.npz]": r"motions\[0\]: expected {file: path, weight: number}, found 'c\.npz'",
    "motions: [{weight: 1}]": r"motions\[0\]: expected {file",
    "motions: [{file: c.npz, weight: 0}, {file: c.npz, weight: 0.0}]": "only weights of 0",
    "motions: [{file: c.npz, weight: -1}]": r"motions\[0\]: weight: expected a number of at least 0, found -1",
    "motions: [{file: c.npz, weight: .nan}]": r"motions\[0\]: weight: expected a number",
    "motions: [{file: c.npz, weight: .inf}]": r"motions\[0\]: weight: expected a number",
    "motions: [{file: c.npz, weight: often}]": r"motions\[0\]: weight: expected a number, found 'often'",
    "motions: [{file: c.npz, wieght: 1}]": r"motions\[0\]: unknown key 'wieght'.*weight",
    "motoins: []": "expected 'motions",
    "motions: [{file: c.npz}]\nmotion: 1": "unknown key 'motion'",
    "motions: [{file: none.npz}]": r"none\.npz is neither in .* nor in the working directory",
    "motions: [": "not readable as YAML",
}


@pytest.mark.parametrize("text", DATASETS)
def test_a_dataset_that_makes_no_sense_is_told(tmp_path: Path, char: CharModel, text: str) -> None:
    write(tmp_path, wavy(3), loop=LoopMode.CLAMP)
    dataset = tmp_path / "set.yaml"
    dataset.write_text(text)
    with pytest.raises(MotionError, match=rf"(?s)set\.yaml: .*{DATASETS[text]}"):
        MotionLib(dataset, char)


def test_relative_files_are_beside_the_dataset_or_in_the_working_directory(
    tmp_path: Path, char: CharModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside, here = tmp_path / "sets", tmp_path / "here"
    for folder in (beside, here):
        folder.mkdir()
    write(beside, wavy(3), loop=LoopMode.CLAMP, name="both")
    write(here, wavy(5), loop=LoopMode.CLAMP, name="both")
    write(here, wavy(7), loop=LoopMode.CLAMP, name="one")
    dataset = beside / "set.yaml"
    dataset.write_text("motions: [{file: both.npz}, {file: one.npz}]")
    monkeypatch.chdir(here)
    lib = MotionLib(dataset, char)
    torch.testing.assert_close(lib.lengths * 30.0, torch.tensor([2.0, 6.0]))


def test_the_root_moves_as_it_faces(char: CharModel) -> None:
    """The shipped walk goes forward: along x, and after a turn of the world along the turned x."""
    lib = MotionLib(CLIPS / "humanoid_walk.npz", char)
    frame = lib.frame(*at(lib, *np.linspace(0.0, 10.0, 101)))
    local = quat_rotate(quat_conjugate(frame.root_rot), frame.root_vel)
    assert local[:, 0].min() > 0.7
    assert local[:, 1].abs().max() < 0.3
    assert load_motion(CLIPS / "humanoid_walk.npz").loop_mode == LoopMode.WRAP
