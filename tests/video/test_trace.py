"""Traces keep what was filmed to the last bit, small, and as far as they go when their writer is killed."""

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from mimickit.anim.char_model import CharModel
from mimickit.video.snapshot import ActorSpec, Moment, Snapshot, copy_poses, rounded
from mimickit.video.traces.trace import EnvCast, Trace, TraceError, TraceHeader, TraceWriter
from tests.video.films import pendulum_pose, write_pendulum

HUMANOID = Path("data/assets/humanoid/humanoid.xml")


def header(asset: Path, *, bodies: int = 3, envs: int = 1, dt: float = 1 / 30) -> TraceHeader:
    casts = tuple(EnvCast(env, (ActorSpec("p", asset, color=(1, 0, 0)),), (bodies,)) for env in range(envs))
    return TraceHeader(dt, "mujoco", casts, {"seed": 3, "name": "swing"}, {"camera": "side"})


def states(count: int, *, envs: int = 1, seed: int = 0, ghost_from: int = 0) -> list[Moment]:
    """Random walks of whole pendulums, far from the origin at times, with forces and a ghost."""
    rng = np.random.default_rng(seed)
    found = []
    place = np.zeros((envs, 3))
    for index in range(count):
        place += rng.normal(size=(envs, 3)) * (50.0 if index % 41 == 40 else 0.05)
        snapshots = []
        for env in range(envs):
            pos, _ = pendulum_pose(*place[env])
            rot = rng.normal(size=(3, 4))
            rot /= np.linalg.norm(rot, axis=-1, keepdims=True)
            ghosts = copy_poses([(pos + 0.1, rot)]) if index >= ghost_from else []
            snapshots.append(Snapshot(
                time=index / 30, env_id=env, step=index, poses=copy_poses([(pos, rot)]), ghosts=ghosts,
                is_cut=index % 17 == 0, contacts=[rng.normal(size=(3, 3)) * 1e4],
                annotations={"episode": index // 17, "reward": float(rng.random())} | {"odd": 1} if index % 2 else {},
            ))  # fmt: skip
        found.append(tuple(snapshots))
    return found


def write(path: Path, head: TraceHeader, moments: list[Moment]) -> Path:
    writer = TraceWriter(path, head)
    for moment in moments:
        writer.write(moment)
    writer.close({"episodes": [{"first_frame": 0, "num_frames": len(moments)}]})
    return path


def assert_same(found: Moment, expected: Moment) -> None:
    """That a state which was read is what was written, on the trace's grid, exactly."""
    for a, b in zip(found, rounded(expected), strict=True):
        assert (a.time, a.step, a.env_id, a.is_cut) == (b.time, b.step, b.env_id, b.is_cut)
        assert a.annotations == b.annotations
        for one, other in zip((*a.poses, *a.ghosts), (*b.poses, *b.ghosts), strict=True):
            assert np.array_equal(one[0], other[0])
            assert np.array_equal(one[1], other[1])
        assert all(np.array_equal(one, other) for one, other in zip(a.contacts, b.contacts, strict=True))


@pytest.mark.parametrize("envs", [1, 3])
@pytest.mark.parametrize("ghost_from", [0, 30, 10**9])
def test_a_trace_gives_back_the_very_numbers(tmp_path: Path, envs: int, ghost_from: int) -> None:
    moments = states(150, envs=envs, ghost_from=ghost_from)
    path = write(tmp_path / "a.trace", header(write_pendulum(tmp_path), envs=envs), moments)
    with Trace(path) as trace:
        assert (len(trace), trace.dt, trace.engine, trace.is_complete) == (150, 1 / 30, "mujoco", True)
        assert (trace.facts, trace.video) == ({"seed": 3, "name": "swing"}, {"camera": "side"})
        assert trace.duration == pytest.approx(149 / 30)
        for found, expected in zip(trace.states(), moments, strict=True):
            assert_same(found, expected)
        for index in (149, 0, 64, 63, 30, 128):  # in any order
            assert_same(trace.state(index), moments[index])
        with pytest.raises(IndexError):
            trace.state(150)


def test_poses_are_rounded_by_less_than_can_be_seen() -> None:
    pos = np.random.default_rng(0).normal(size=(1000, 3)) * 100
    rot = np.random.default_rng(1).normal(size=(1000, 4))
    rot /= np.linalg.norm(rot, axis=-1, keepdims=True)
    (kept,) = rounded((Snapshot(0.0, 0, 0, [(pos, rot)], contacts=[pos * 1e3]),))
    ((kept_pos, kept_rot),) = kept.poses
    assert np.abs(kept_pos - pos).max() <= 0.51e-5
    unit = kept_rot / np.linalg.norm(kept_rot, axis=-1, keepdims=True)
    assert np.degrees(2 * np.arccos(np.clip(np.abs((unit * rot).sum(-1)), 0, 1))).max() < 0.01
    assert np.abs(kept.contacts[0] - np.clip(pos * 1e3, -16383.5, 16383.5)).max() <= 0.25
    (again,) = rounded((kept,))
    for first, second in zip((*kept.poses[0], *kept.contacts), (*again.poses[0], *again.contacts), strict=True):
        assert np.array_equal(first, second)


def test_the_character_goes_with_the_trace(tmp_path: Path) -> None:
    asset = write_pendulum(tmp_path)
    path = write(tmp_path / "a.trace", header(asset), states(3))
    text = asset.read_text()
    asset.unlink()
    with Trace(path) as trace:
        (actor,) = trace.casts[0].actors
        assert actor.asset_text == text
        assert actor.color == (1.0, 0.0, 0.0)


def test_a_trace_whose_writer_was_killed_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    moments = states(200)
    writer = TraceWriter(tmp_path / "a.trace.part", header(write_pendulum(tmp_path)))
    for moment in moments:
        writer.write(moment)
    copy = tmp_path / "copy.trace.part"
    content = (tmp_path / "a.trace.part").read_bytes()
    writer.abort()
    for cut, expected in ((len(content), 192), (len(content) - 1, 128), (len(content) // 2, 64)):
        copy.write_bytes(content[:cut])
        with Trace(copy) as trace:
            assert not trace.is_complete
            assert len(trace) == expected
            for found, state in zip(trace.states(), moments, strict=False):
                assert_same(found, state)


@pytest.mark.parametrize("content", [b"", b"not a trace", b"PK\x03\x04" + bytes(100)])
def test_what_is_no_trace_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.trace"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"bad\.trace"):
        Trace(path)
    with pytest.raises(TraceError, match=r"absent.trace.*No such file"):
        Trace(tmp_path / "absent.trace")


def test_another_archive_or_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.trace"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(TraceError, match=r"b\.trace"):
        Trace(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trace.json", json.dumps({"format": "mimickit-trace-9"}))
    with pytest.raises(TraceError, match=r"mimickit-trace-1.*mimickit-trace-9"):
        Trace(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("trace.json", json.dumps({"format": "mimickit-trace-1", "dt": 0}))
    with pytest.raises(TraceError, match=r"dt: expected a number above 0"):
        Trace(path)


def test_a_damaged_chunk_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.trace", header(write_pendulum(tmp_path)), states(100))
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("states/000001/pos.npy")
    content = bytearray(path.read_bytes())
    start = info.header_offset + 60
    content[start : start + 50] = bytes(50)
    path.write_bytes(content)
    with Trace(path) as trace:
        assert trace.state(3)[0].step == 3
        with pytest.raises(TraceError, match=r"a.trace: states/000001"):
            trace.state(70)


@pytest.fixture(scope="module")
def walk() -> list[Moment]:
    """Ten seconds of the walk on the humanoid, with the clip as its own ghost a moment late."""
    import torch

    from mimickit.anim.motion_lib import MotionLib

    model = CharModel.from_file(HUMANOID)
    lib = MotionLib("data/motions/humanoid/humanoid_walk.npz", model)
    moments = []
    for index in range(301):
        poses = []
        for time in (index / 30, max(index - 1, 0) / 30):
            frame = lib.frame(torch.tensor([0]), torch.tensor([time]))
            pos, rot = model.forward_kinematics(frame.root_pos, frame.root_rot, frame.joint_rot)
            poses.append((pos[0].numpy(), rot[0].numpy()))
        force = np.zeros((15, 3))
        force[index // 15 % 2, 2] = 400.0 + 50 * np.sin(index)
        total, reward = 0.93 * index, 0.93 + 1e-5 * index
        facts = {"episode": 0, "episode_time": index / 30, "episode_return": total, "reward": reward}
        moments.append((Snapshot(
            index / 30, 0, index, copy_poses(poses[:1]), copy_poses(poses[1:]), index == 0, [force], facts,
        ),))  # fmt: skip
    return moments


def test_a_humanoid_with_its_reference_takes_less_than_20_kb_a_second(tmp_path: Path, walk: list[Moment]) -> None:
    path = write(tmp_path / "walk.trace", header(HUMANOID, bodies=15), walk)
    assert path.stat().st_size / 10.0 < 20e3


def test_an_hour_is_opened_by_its_index_and_any_state_by_its_chunk(tmp_path: Path, walk: list[Moment]) -> None:
    """What makes opening and seeking quick whatever the length: few reads of a large file."""
    writer = TraceWriter(tmp_path / "hour.trace", header(HUMANOID, bodies=15))
    for _ in range(20):  # of ten seconds; the file's structure is what counts
        for moment in walk[:300]:
            writer.write(moment)
    writer.close({})
    reads: list[str] = []
    with Trace(tmp_path / "hour.trace") as trace:
        original = trace._archive.read
        trace._archive.read = lambda name: (reads.append(name), original(name))[1]
        assert trace.num_states == 6000
        assert reads == []
        assert np.array_equal(trace.state(5999)[0].poses[0][0], rounded(walk[299])[0].poses[0][0])
        assert {name.split("/")[1] for name in reads} == {"000093"}
