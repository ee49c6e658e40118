"""When filming fails: training goes on, the cause is told once, and what was filmed is not lost."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.film_crew import FilmCrew
from mimickit.video.plan import make_plan
from mimickit.video.production import ClipPlan, FilmPlan
from mimickit.video.snapshot import Moment
from mimickit.video.traces.trace import EnvCast, Trace, TraceHeader
from tests.engines.test_recorder import film, make, step
from tests.video.films import pendulum_pose, read_frames, snapshot

FAILED = "filming failed"

# a run of its own, so that its environment, its end and its signals are its own
RUN = textwrap.dedent(
    """
    import logging, os, signal, sys, time
    from pathlib import Path
    import mimickit.util.mujoco_import as guard
    guard.ensure_mujoco_importable()
    from tests.engines.test_recorder import film, make, step
    logging.basicConfig(level=logging.WARNING)
    folder = Path(sys.argv[1])
    engine = make(folder, **{options})
    {body}
    """
)


def run(folder: Path, body: str, *, options: str = "{}", **environment: str) -> subprocess.CompletedProcess[str]:
    """The body in a fresh process without display; environment None removes a variable."""
    script = RUN.replace("{options}", options).replace("{body}", textwrap.dedent(body))
    env = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MUJOCO_GL", "WAYLAND_DISPLAY")}
    return subprocess.run(
        [sys.executable, "-c", script, str(folder)], env={**env, **environment}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


TWO_CLIPS = """
for _ in range(2):
    engine.start_video_recording()
    step(engine, 5)
    print("clip", engine.stop_video_recording() is not None)
print("time", round(engine.get_sim_time(0) * 30))
engine.close()
"""


def test_without_display_and_without_choice_of_gl_there_is_a_film(tmp_path: Path) -> None:
    result = run(tmp_path, TWO_CLIPS)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["clip", "True", "clip", "True", "time", "10"]
    assert result.stderr == ""
    for name in ("film.mp4", "film_001.mp4"):
        frames = read_frames(tmp_path / "videos" / name)
        assert len(frames) == 6
        assert frames[0].mean() > 60


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"MUJOCO_GL": "osmesa"}, ["osmesa", "libosmesa6"]),
        ({"MUJOCO_GL": "egl", "MUJOCO_EGL_DEVICE_ID": "99"}, ["egl", "MUJOCO_EGL_DEVICE_ID", "libegl1"]),
        ({"MUJOCO_EGL_DEVICE_ID": "99"}, ["egl", "osmesa", "libegl1"]),
        ({"MUJOCO_GL": "off"}, ["MUJOCO_GL=off"]),
        ({"MUJOCO_GL": "opengl"}, ["MUJOCO_GL=opengl", "egl"]),
    ],
)
def test_without_gl_the_run_goes_on_and_says_once_what_to_install(
    tmp_path: Path, environment: dict[str, str], words: list[str]
) -> None:
    result = run(tmp_path, TWO_CLIPS, **environment)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["clip", "False", "clip", "False", "time", "10"]
    assert result.stderr.count(FAILED) == 1
    assert all(word in result.stderr for word in words), result.stderr
    assert "Traceback" not in result.stderr
    # what can't be filmed here can be filmed elsewhere
    assert sorted(p.name for p in (tmp_path / "videos").iterdir()) == ["film.trace", "film_001.trace"]
    with Trace(tmp_path / "videos" / "film.trace") as trace:
        assert (trace.is_complete, len(trace)) == (True, 6)


def test_without_gl_a_strict_run_ends(tmp_path: Path) -> None:
    result = run(tmp_path, TWO_CLIPS, options="{'strict': True}", MUJOCO_GL="egl", MUJOCO_EGL_DEVICE_ID="99")
    assert result.returncode == 1
    assert "VideoError: no GL to draw with" in result.stderr.strip().splitlines()[-1]


def test_leaving_without_closing_finishes_the_film_quietly(tmp_path: Path) -> None:
    result = run(tmp_path, "engine.start_video_recording()\nstep(engine, 40)")
    assert (result.returncode, result.stderr) == (0, "")
    assert len(read_frames(tmp_path / "videos" / "film.mp4")) == 41
    assert (tmp_path / "videos" / "film.json").is_file()
    assert len(list((tmp_path / "videos").iterdir())) == 3


def test_leaving_between_clips_is_quiet_too(tmp_path: Path) -> None:
    result = run(tmp_path, "film(engine, 3)\nmake(folder).start_video_recording()")
    assert (result.returncode, result.stderr) == (0, "")


def test_an_exception_that_ends_the_program_keeps_the_film(tmp_path: Path) -> None:
    result = run(tmp_path, "engine.start_video_recording()\nstep(engine, 4)\nraise ValueError('mine')")
    assert result.returncode == 1
    assert result.stderr.strip().endswith("ValueError: mine")
    assert len(read_frames(tmp_path / "videos" / "film.mp4")) == 5


LONG = """
engine.start_video_recording()
step(engine, 90)
try:
    print("filming", flush=True)
    step(engine, 100000)
except KeyboardInterrupt:
    engine.stop_video_recording()
    print("stopped", flush=True)
"""


@contextlib.contextmanager
def running(folder: Path, body: str) -> Iterator[subprocess.Popen[str]]:
    script = RUN.replace("{options}", "{}").replace("{body}", body)
    with subprocess.Popen(
        [sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "filming\n"
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def test_ctrl_c_finishes_the_film(tmp_path: Path) -> None:
    """As a terminal sends it: to the whole group of processes, the encoder's parent among them."""
    with running(tmp_path, LONG) as process:
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (out, err, process.returncode) == ("stopped\n", "", 0)
    assert len(read_frames(tmp_path / "videos" / "film.mp4")) >= 91
    assert sorted(p.name for p in (tmp_path / "videos").iterdir()) == ["film.json", "film.mp4", "film.trace"]


def test_kill_leaves_a_part_that_plays_and_no_finished_name(tmp_path: Path) -> None:
    with running(tmp_path, LONG) as process:
        time.sleep(2.0)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    part = tmp_path / "videos" / "film.mp4.part"
    assert sorted(p.name for p in (tmp_path / "videos").iterdir()) == [part.name, "film.trace.part"]
    with Trace(tmp_path / "videos" / "film.trace.part") as trace:
        assert not trace.is_complete
        assert len(trace) >= 64
        assert trace.state(63)[0].step == 63
    end, size = time.monotonic() + 30.0, -1
    while time.monotonic() < end and size != (size := part.stat().st_size):
        time.sleep(0.5)
    assert len(read_frames(part)) > 10
    engine = make(tmp_path)  # the next run neither takes the part's name nor touches it
    assert film(engine, 1).path.name == "film_001.mp4"
    engine.close()
    assert part.stat().st_size == size


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if FAILED in record.message]


def test_an_encoder_killed_in_the_middle(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = make(tmp_path)
    recorder = engine.get_video_recorder()
    engine.start_video_recording()
    step(engine, 5)
    while (crew := recorder._crew) is None or (made := crew._work.production) is None or not made._takes:
        time.sleep(0.01)
    writer = made._takes[0]._writer
    assert writer is not None
    writer._process.kill()
    for _ in range(2000):
        if failures(caplog):
            break
        engine.step()
    step(engine, 3)
    assert engine.stop_video_recording() is None
    step(engine, 5)
    (message,) = failures(caplog)
    assert "ffmpeg was killed by signal 9" in message
    assert not list((tmp_path / "videos").glob("*.mp4"))
    assert len(read_frames(film(engine, 3).path)) == 4  # the next clip is whole again
    engine.close()


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A small file system of memory; skips where mounting isn't allowed."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        pytest.skip("no mount on this system")
    if done.returncode:
        pytest.skip(f"mounting needs privileges: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = make(tmp_path, width=320, height=240)
    recorder = engine.get_video_recorder()
    with mounted(tmp_path / "small", "size=64k") as small:
        engine.start_video_recording(small, orbit_speed=400, camera="orbit")
        steps = 0
        while recorder.is_recording and steps < 3000:
            engine.step()
            steps += 1
        assert engine.stop_video_recording() is None
        (message,) = failures(caplog)
        assert "No space left" in message
        assert not list(small.glob("*.mp4"))
    step(engine, 3)
    assert len(read_frames(film(engine, 2).path)) == 3
    engine.close()


def test_a_full_disk_when_the_film_is_finished_leaves_the_part(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    engine = make(tmp_path, width=320, height=240)
    with mounted(tmp_path / "small", "size=256k") as small:
        (small / "ballast").write_bytes(bytes(200 * 1024))
        with engine.recording(small):
            step(engine, 60)
        part = small / "film.mp4.part"
        used = part.stat().st_size if part.exists() else 0
        assert used * 2 > 56 * 1024, "the film is too small for this test"
        (message,) = failures(caplog)
        assert "No space left" in message
        assert not list(small.glob("*.mp4"))
    engine.close()


def test_a_read_only_folder(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = make(tmp_path)
    with mounted(tmp_path / "fixed", "ro,size=1m") as fixed:
        for _ in range(2):
            engine.start_video_recording(fixed)
            step(engine, 3)
            assert engine.stop_video_recording() is None
    (message,) = failures(caplog)
    assert "Read-only file system" in message
    assert str(tmp_path / "fixed") in message
    assert round(engine.get_sim_time(0) * 30) == 6
    engine.close()


def test_a_folder_that_is_a_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    engine = make(tmp_path, out_dir=tmp_path / "file")
    engine.start_video_recording()
    step(engine, 3)
    assert engine.stop_video_recording() is None
    (message,) = failures(caplog)
    assert str(tmp_path / "file") in message
    engine.close()


def test_strict_raises_where_it_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    engine = make(tmp_path, out_dir=tmp_path / "file", strict=True)
    with pytest.raises(VideoError, match="can't be written"):
        engine.start_video_recording()
    step(engine, 2)
    engine.close()


def breaks(shot: object) -> object:
    raise ZeroDivisionError("in the user's camera")


def test_a_users_camera_that_breaks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = make(tmp_path, camera=f"{__name__}:breaks")
    with engine.recording():
        step(engine, 10)
    assert engine.get_video_recording() is None
    (message,) = failures(caplog)
    assert "ZeroDivisionError: in the user's camera" in message
    assert [p.name for p in (tmp_path / "videos").iterdir()] == ["film.trace"]
    with Trace(tmp_path / "videos" / "film.trace") as trace:  # what could not be filmed can be filmed again
        assert (trace.is_complete, len(trace)) == (True, 11)
    engine.close()


class SlowFilmer:
    """Takes its time, and notes what it was given."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.most_waiting = 0
        self.crew: FilmCrew | None = None

    def begin(self, plan: FilmPlan) -> None:
        self._frame = np.zeros((plan.height, plan.width, 3), dtype=np.uint8)

    def shoot(self, clip: ClipPlan, moment: Moment) -> np.ndarray:
        time.sleep(0.002)
        assert self.crew is not None
        self.most_waiting = max(self.most_waiting, self.crew._work.orders.qsize())
        self.seen.append(moment[0].step)
        return self._frame

    def close(self) -> None:
        self.seen.append(-1)


def test_a_slow_crew_holds_the_simulation_back_and_loses_nothing(tmp_path: Path) -> None:
    filmer = SlowFilmer()
    crew = filmer.crew = FilmCrew(filmer)
    config = VideoConfig(width=64, height=48, trace=False)
    header = TraceHeader(1 / 30, "none", (EnvCast(0, (), ()),))
    for name in ("a.mp4", "b.mp4"):
        crew.begin(make_plan(config, header, tmp_path / name, []))
        for index in range(300):
            shot = snapshot(pendulum_pose())
            shot.step = index
            crew.film((shot,))
        wrap = crew.finish().result(timeout=60)
        assert (wrap.error, [clip.num_frames for clip in wrap.clips]) == (None, [300])
        assert len(read_frames(tmp_path / name)) == 300
    crew.close()
    assert filmer.seen == [*range(300), *range(300), -1]
    assert 0 < filmer.most_waiting <= 65


def test_a_crew_that_went_home_is_an_error_not_a_wait(tmp_path: Path) -> None:
    filmer = SlowFilmer()
    crew = filmer.crew = FilmCrew(filmer)
    with pytest.raises(VideoError, match="thread is gone"):
        crew.film((snapshot(pendulum_pose()),))
