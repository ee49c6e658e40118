"""Films as files: what players need, names that never collide, and what is left when something dies."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from mimickit.video.config import Quality
from mimickit.video.errors import VideoError
from mimickit.video.files.frame_writer import FrameWriter, finalize, find_ffmpeg, free_name, part_of, reserve_name
from tests.video.films import boxes, describe, duration, read_frames

SIZE = {"width": 128, "height": 96}


def picture(i: int) -> np.ndarray:
    """Four flat patches whose colours tell i, and a moving bar."""
    frame = np.full((96, 128, 3), 40, dtype=np.uint8)
    frame[:48, :64] = [200, 30, 30]
    frame[:48, 64:] = [30, 200, 30]
    frame[48:, :64] = [30, 30, 200]
    frame[:, (i * 3) % 120 : (i * 3) % 120 + 6] = 255
    return frame


def write(path: Path, count: int, *, fps: float = 30.0, quality: Quality = Quality.STANDARD) -> Path:
    path = reserve_name(path)
    writer = FrameWriter(part_of(path), fps=fps, quality=quality, **SIZE)
    for i in range(count):
        writer.write(picture(i))
    writer.close()
    return finalize(part_of(path), path)


@pytest.mark.parametrize("quality", list(Quality))
def test_players_find_what_they_need(tmp_path: Path, quality: Quality) -> None:
    path = write(tmp_path / "film.mp4", 45, quality=quality)
    text = describe(path)
    assert "h264" in text
    assert "yuv420p" in text
    assert "128x96" in text
    assert "30 fps" in text
    assert boxes(path).index("moov") < boxes(path).index("mdat")
    assert "moof" not in boxes(path)
    assert duration(path) == pytest.approx(1.5, abs=0.01)
    frames = read_frames(path)
    assert len(frames) == 45
    for i in (0, 20, 44):
        assert np.abs(frames[i].astype(int) - picture(i)).mean() < 12
    assert [p.name for p in tmp_path.iterdir()] == ["film.mp4"]


@pytest.mark.parametrize("count", [1, 2])
def test_one_frame_is_a_film(tmp_path: Path, count: int) -> None:
    path = write(tmp_path / "film.mp4", count)
    assert len(read_frames(path)) == count
    assert duration(path) == pytest.approx(count / 30, abs=0.01)


@pytest.mark.parametrize("fps", [10.0, 29.97, 60.0, 12.5])
def test_any_frame_rate_keeps_time(tmp_path: Path, fps: float) -> None:
    path = write(tmp_path / "film.mp4", 40, fps=fps)
    assert len(read_frames(path)) == 40
    assert duration(path) == pytest.approx(40 / fps, abs=0.02)


def test_an_existing_film_is_kept(tmp_path: Path) -> None:
    paths = [write(tmp_path / "film.mp4", 3 + i) for i in range(3)]
    assert [path.name for path in paths] == ["film.mp4", "film_001.mp4", "film_002.mp4"]
    assert [len(read_frames(path)) for path in paths] == [3, 4, 5]


def test_a_name_taken_while_filming_is_not_written_over(tmp_path: Path) -> None:
    path = reserve_name(tmp_path / "film.mp4")
    writer = FrameWriter(part_of(path), fps=30.0, **SIZE)
    writer.write(picture(0))
    path.write_text("somebody else's")
    writer.close()
    final = finalize(part_of(path), path)
    assert final.name == "film_001.mp4"
    assert path.read_text() == "somebody else's"


def test_reserved_names_differ(tmp_path: Path) -> None:
    names = {reserve_name(tmp_path / "new" / "folder" / "film.mp4") for _ in range(5)}
    assert len(names) == 5
    (tmp_path / "side.json").write_text("{}")
    assert free_name(tmp_path / "side.mp4").name == "side_001.mp4"


@pytest.mark.parametrize("name", ["a:b.mp4", "-film.mp4", "with space %d.mp4", "é.mp4"])
def test_names_that_ffmpeg_could_misread(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, 2)
    assert path.name == name
    assert len(read_frames(path)) == 2


def test_frames_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="127x96"):
        FrameWriter(tmp_path / "x.part", width=127, height=96, fps=30.0)
    writer = FrameWriter(tmp_path / "x.part", fps=30.0, **SIZE)
    with pytest.raises(ValueError, match=r"\(96, 128, 3\).*\(96, 128, 4\)"):
        writer.write(np.zeros((96, 128, 4), dtype=np.uint8))
    writer.abort()


def test_a_killed_encoder_is_an_error_that_says_so(tmp_path: Path) -> None:
    writer = FrameWriter(tmp_path / "x.part", fps=30.0, **SIZE)
    writer.write(picture(0))
    writer._process.kill()
    with pytest.raises(VideoError, match="ffmpeg was killed by signal 9"):
        for i in range(2000):
            writer.write(picture(i))
    writer.abort()


def test_a_folder_that_can_not_be_made_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(VideoError, match=r"file/film.mp4: can't be written"):
        reserve_name(tmp_path / "file" / "film.mp4")


def test_an_encoder_that_does_not_start_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(tmp_path / "no-ffmpeg"))
    find_ffmpeg.cache_clear()
    try:
        with pytest.raises(VideoError, match=r"film\.part"):
            FrameWriter(tmp_path / "film.part", fps=30.0, **SIZE)
    finally:
        monkeypatch.undo()
        find_ffmpeg.cache_clear()


def test_the_bundled_encoder_does_without_a_system_ffmpeg(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    find_ffmpeg.cache_clear()
    assert Path(find_ffmpeg()).is_file()
    assert len(read_frames(write(tmp_path / "film.mp4", 2))) == 2


def test_no_encoder_at_all_is_one_error_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    find_ffmpeg.cache_clear()
    with pytest.raises(VideoError, match="pip install imageio-ffmpeg"):
        find_ffmpeg()


def test_a_killed_process_leaves_a_part_that_plays(tmp_path: Path) -> None:
    """kill -9 while frames are being written: all that was written is there, under the name of a part."""
    script = textwrap.dedent(
        """
        import sys
        from pathlib import Path
        import numpy as np
        from mimickit.video.files.frame_writer import FrameWriter, part_of, reserve_name
        path = reserve_name(Path(sys.argv[1]))
        writer = FrameWriter(part_of(path), width=128, height=96, fps=30.0)
        for i in range(100000):
            frame = np.full((96, 128, 3), i % 200, dtype=np.uint8)
            writer.write(frame)
            if i == 90:
                print("filming", flush=True)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path / "film.mp4")], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"filming\n"
        os.killpg(process.pid, signal.SIGKILL)  # the whole group: the encoder has its own
    part = tmp_path / "film.mp4.part"
    assert [p.name for p in tmp_path.iterdir()] == [part.name]
    wait_until_still(part)
    assert len(read_frames(part)) >= 91


def wait_until_still(path: Path) -> None:
    """The encoder, alone in the world, finishes what it was given."""
    size = -1
    while size != (size := path.stat().st_size):
        time.sleep(0.3)
