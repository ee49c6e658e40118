"""The shipped clips: on the ground, whole, seamless, and what the importer makes of their source."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from mimickit.anim.char_model import CharModel
from mimickit.anim.importers.__main__ import main
from mimickit.anim.importers.deepmimic_json import ClipOptions, import_clip, parse_clip
from mimickit.anim.importers.ground import lowest_points
from mimickit.anim.importers.humanoid_clips import HUMANOID_CLIPS
from mimickit.anim.importers.poses import Poses, resample
from mimickit.anim.motion import LoopMode, Motion, MotionError, load_motion
from mimickit.anim.motion_lib import MotionLib
from mimickit.util.rotations import exp_map_to_quat, quat_angle, quat_conjugate, quat_diff_angle, quat_mul

ROOT = Path(__file__).parents[2]
CLIPS = ROOT / "data/motions/humanoid"
SOURCE = Path(__file__).parent / "source"
LENGTHS = {  # s, of the source
    "backflip": 1.75, "cartwheel": 2.717, "crawl": 2.933, "dance_a": 1.617, "dance_b": 2.533, "getup_facedown": 3.033,
    "getup_faceup": 3.767, "jump": 1.767, "kick": 1.533, "punch": 2.133, "roll": 2.016, "run": 0.8, "spin": 4.417,
    "spinkick": 1.283, "walk": 1.267,
}  # fmt: skip
FEET = ["left_foot", "right_foot"]


@pytest.fixture(scope="module")
def char() -> CharModel:
    return CharModel.from_file(ROOT / "data/assets/humanoid/humanoid.xml")


def clip(name: str) -> Motion:
    return load_motion(CLIPS / f"humanoid_{name}.npz")


def source(name: str) -> str:
    return (SOURCE / f"humanoid3d_{name}.txt").read_text()


def poses_of(motion: Motion, char: CharModel) -> Poses:
    frames = torch.from_numpy(motion.frames)
    root_rot = exp_map_to_quat(frames[:, 3:6]).unsqueeze(1)
    rots = torch.cat((root_rot, char.dof_to_rot(frames[:, 6:])), dim=1)
    times = torch.arange(len(frames), dtype=torch.float64) / motion.fps
    return Poses(times, frames[:, :3].double(), rots.double())


def test_all_clips_are_shipped_with_their_licence() -> None:
    assert {path.stem for path in CLIPS.glob("*.npz")} == {f"humanoid_{name}" for name in LENGTHS}
    assert set(HUMANOID_CLIPS) == set(LENGTHS)
    readme = (CLIPS / "README.md").read_text()
    assert "zlib license" in readme
    for name, options in HUMANOID_CLIPS.items():
        assert f"| humanoid_{name} | {options.loop_mode.name.lower()} | {clip(name).num_frames} |" in readme


@pytest.mark.parametrize("name", LENGTHS)
def test_length_rate_and_dofs(name: str, char: CharModel) -> None:
    motion = clip(name)
    assert motion.length == pytest.approx(LENGTHS[name], abs=1e-3)
    assert motion.fps == pytest.approx(60.0, abs=0.1)
    assert motion.num_dofs == char.num_dofs
    assert motion.loop_mode == HUMANOID_CLIPS[name].loop_mode
    low, high = char.dof_limits.T.numpy()
    dofs = motion.frames[:, 6:]
    assert (dofs >= low - 1e-3).all()
    assert (dofs <= high + 1e-3).all()


@pytest.mark.parametrize("name", LENGTHS)
def test_nothing_sinks_into_the_ground_and_nothing_floats(name: str, char: CharModel) -> None:
    poses = poses_of(clip(name), char)
    low = lowest_points(poses, char)
    assert low.min() > -0.015
    on_ground = low < 0.05
    in_the_air = {"backflip": 0.3, "dance_b": 0.25, "jump": 0.25, "spin": 0.2, "spinkick": 0.3, "run": 0.35}
    assert on_ground.double().mean() > 1.0 - in_the_air.get(name, 0.1)


@pytest.mark.parametrize(("name", "seconds"), [("walk", 0.3), ("run", 0.1)])
def test_feet_stand_still_while_they_stand(name: str, seconds: float, char: CharModel) -> None:
    """For some time in every round each foot is on the ground, at less than a fifth of the root's speed."""
    motion = clip(name)
    poses = poses_of(motion, char)
    pos, _ = char.forward_kinematics(poses.root_pos.float(), poses.rots[:, 0].float(), poses.rots[:, 1:].float())
    root_speed = float(poses.root_pos[-1, 0] - poses.root_pos[0, 0]) / motion.length
    span = round(seconds * motion.fps)
    for foot in FEET:
        speed = (pos[1:, char.body_id(foot)] - pos[:-1, char.body_id(foot)]).norm(dim=-1) * motion.fps
        fastest = speed.unfold(0, span, 1).amax(dim=-1)
        start = int(fastest.argmin())
        assert fastest[start] < 0.2 * root_speed
        assert lowest_points(poses, char, [foot])[start : start + span].abs().max() < 0.02


def test_mirrored_or_swapped_limbs_would_show(char: CharModel) -> None:
    """Left is left: positive y; hands hang beside the hips in the walk; knees bend backwards, elbows forwards."""
    lib = MotionLib(CLIPS / "humanoid_walk.npz", char)
    frame = lib.frame(torch.zeros(40, dtype=torch.int64), torch.linspace(0.0, 1.2, 40))
    origin, upright = torch.zeros(40, 3), torch.tensor([0.0, 0.0, 0.0, 1.0]).expand(40, 4)
    pos, _ = char.forward_kinematics(origin, upright, frame.joint_rot)
    side = {name: pos[:, char.body_id(name)] for name in char.body_names}
    for part in ("upper_arm", "lower_arm", "hand", "thigh", "shin"):
        assert side[f"left_{part}"][:, 1].min() > 0.0
        assert side[f"right_{part}"][:, 1].max() < 0.0
    for hand in ("left_hand", "right_hand"):
        assert side[hand][:, 2].abs().max() < 0.2
    for which in ("left", "right"):
        thigh, shin, foot = (side[f"{which}_{part}"] for part in ("thigh", "shin", "foot"))
        straight = shin + (shin - thigh)
        assert (foot[:, 0] - straight[:, 0]).max() < 0.03
        upper, lower, hand_pos = (side[f"{which}_{part}"] for part in ("upper_arm", "lower_arm", "hand"))
        straight_arm = lower + (lower - upper)
        assert (hand_pos[:, 0] - straight_arm[:, 0]).min() > -0.02
    assert side["head"][:, 2].min() > 0.4


@pytest.mark.parametrize("name", [n for n, options in HUMANOID_CLIPS.items() if options.loop_mode == LoopMode.WRAP])
def test_loops_are_seamless(name: str, char: CharModel) -> None:
    """Over the seam joints, root and heading step no further than elsewhere, and joint speeds change no more."""
    lib = MotionLib(CLIPS / f"humanoid_{name}.npz", char)
    fps, length = clip(name).fps, float(lib.lengths[0])
    count = clip(name).num_frames - 1
    times = (torch.arange(2 * count) + 0.5) / fps  # between frames, so that the seam is one step like any other
    frame = lib.frame(torch.zeros(len(times), dtype=torch.int64), times)
    joint_steps = quat_diff_angle(frame.joint_rot[1:], frame.joint_rot[:-1])
    root_steps = quat_diff_angle(frame.root_rot[1:], frame.root_rot[:-1])
    moves = (frame.root_pos[1:] - frame.root_pos[:-1]).norm(dim=-1)
    seam = count - 1
    usual = torch.cat((joint_steps[: seam - 1], joint_steps[seam + 2 : 2 * count - 2]))
    assert (joint_steps[seam] <= usual.amax(dim=0) + 1e-4).all()
    assert root_steps[seam] <= root_steps[: seam - 1].max() + 1e-4
    assert moves[seam] <= moves[: seam - 1].max() + 1e-4
    changes = quat_angle(quat_mul(_step(frame.joint_rot[1:]), quat_conjugate(_step(frame.joint_rot[:-1]))))
    assert changes[seam - 1 : seam + 1].max() <= changes[: seam - 2].max() + 1e-4
    start, end = lib.frame(torch.tensor([0, 0]), torch.tensor([0.0, 10.0 * length])).root_rot
    assert quat_diff_angle(start, end) < 0.01


def _step(rots: torch.Tensor) -> torch.Tensor:
    return quat_mul(quat_conjugate(rots[:-1]), rots[1:])


def test_walk_and_run_go_straight() -> None:
    for name, speed in (("walk", 0.98), ("run", 3.56)):
        motion = clip(name)
        way = motion.frames[-1, :3] - motion.frames[0, :3]
        np.testing.assert_allclose(way, [speed * motion.length, 0.0, 0.0], atol=0.02)


@pytest.mark.parametrize("name", ["walk", "run", "backflip"])
def test_the_importer_makes_what_is_shipped(name: str, tmp_path: Path) -> None:
    assert main(["--source", str(SOURCE), "--out", str(tmp_path), "--clips", name]) == 0
    made, shipped = load_motion(tmp_path / f"humanoid_{name}.npz"), clip(name)
    assert (made.loop_mode, made.fps) == (shipped.loop_mode, shipped.fps)
    np.testing.assert_allclose(made.frames, shipped.frames, atol=1e-4)


def test_the_mended_clip_stays_near_its_source(char: CharModel) -> None:
    """Away from the jumps nothing but the height changes; at them no joint by more than half the jump."""
    for name, jumps in (("walk", (0.0, 19.0 / 30.0, 38.0 / 30.0)), ("backflip", ())):
        raw = parse_clip(source(name), char, source=name)
        made = poses_of(clip(name), char)
        plain = resample(raw, made.times.clamp_max(float(raw.times[-1])))
        change = quat_diff_angle(plain.rots, made.rots).amax(dim=1)
        near = torch.zeros_like(change, dtype=torch.bool)
        for jump in jumps:
            near |= (made.times - jump).abs() < 0.2 + 0.5 / 30.0 + 0.07
        assert change[~near].max() < 2e-3
        assert change.max() < 0.35


def test_directions_of_the_source(char: CharModel) -> None:
    """The source's x is forward, its y up, its z right; its arms hang at rest."""
    row = (
        [0.1, 1.0, 2.0, 3.0]
        + [1.0, 0.0, 0.0, 0.0] * 3
        + ([1.0, 0.0, 0.0, 0.0, 0.0] + [1.0, 0.0, 0.0, 0.0] * 2 + [0.0]) * 2
    )
    poses = parse_clip(f'{{"Loop": "none", "Frames": [{row}, {row}]}}', char, source="rest")
    assert poses.root_pos[0].tolist() == [1.0, -3.0, 2.0]
    pos, _ = char.forward_kinematics(torch.zeros(3), torch.tensor([0.0, 0.0, 0.0, 1.0]), poses.rots[0, 1:].float())
    for side, sign in (("left", 1.0), ("right", -1.0)):
        arm = pos[char.body_id(f"{side}_hand")] - pos[char.body_id(f"{side}_upper_arm")]
        torch.testing.assert_close(arm, torch.tensor([0.0, 0.0, -0.533735]), atol=1e-5, rtol=0.0)
        assert sign * pos[char.body_id(f"{side}_foot"), 1] > 0.05


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no json", "expected DeepMimic JSON"),
        ('{"Loop": "wrap"}', "expected DeepMimic JSON"),
        ('{"Frames": [["a"]]}', "expected DeepMimic JSON"),
        ('{"Frames": [[1, 2], [3, 4]]}', r"expected 2 rows or more of 44 numbers, found \(2, 2\)"),
        (f'{{"Frames": [{[0.0] * 44}, {[0.0] * 44}]}}', "durations above 0"),
    ],
)
def test_a_source_that_is_none_is_told(text: str, message: str, char: CharModel) -> None:
    with pytest.raises(MotionError, match=f"clip x: .*{message}"):
        import_clip(text, char, ClipOptions(LoopMode.CLAMP), source="clip x")


def test_datasets_name_clips_that_are_there(char: CharModel) -> None:
    everything = MotionLib(CLIPS / "humanoid_all.yaml", char)
    assert everything.num_motions == len(LENGTHS)
    locomotion = MotionLib(CLIPS / "humanoid_locomotion.yaml", char)
    assert (locomotion.loop_modes == LoopMode.WRAP).all()
    assert set(yaml.safe_load((CLIPS / "humanoid_all.yaml").read_text())) == {"motions"}


def test_the_command_tells_what_is_wrong(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mimickit.anim.importers", "--source", str(tmp_path), "--out", str(tmp_path / "o")],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert "humanoid3d_backflip.txt" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_source_that_is_no_wheel_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "clips.whl").write_text("no archive")
    assert main(["--source", str(tmp_path / "clips.whl"), "--out", str(tmp_path / "o")]) == 1
    assert f"{tmp_path / 'clips.whl'}: expected the pybullet wheel or a folder of" in capsys.readouterr().err
