"""Every kind of file that a clip can become: what it claims and what is in it, and what is left when it breaks."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from mimickit.video.config import Codec, Quality, VideoFormat
from mimickit.video.errors import VideoError
from mimickit.video.files import encoders
from mimickit.video.files.encoders import find_ffmpeg, limit_fps
from mimickit.video.files.frame_writer import FrameWriter, Writer, finalize, open_writer
from mimickit.video.files.names import beside, discard_part, format_of, free_name, part_of, reserve_name, suffix_of
from mimickit.video.files.poster import Poster
from tests.video.films import boxes, describe, duration

WIDTH, HEIGHT = 160, 96
OUTPUTS: dict[str, tuple[VideoFormat, Codec | None, str]] = {
    "mp4": (VideoFormat.MP4, None, "(avc1"),
    "h265": (VideoFormat.MP4, Codec.H265, "(hvc1"),
    "av1": (VideoFormat.MP4, Codec.AV1, "(av01"),
    "webm": (VideoFormat.WEBM, None, "vp9"),
    "webm-av1": (VideoFormat.WEBM, Codec.AV1, "av1"),
    "gif": (VideoFormat.GIF, None, "gif"),
    "png": (VideoFormat.PNG, None, "png"),
}
every_output = pytest.mark.parametrize("output", OUTPUTS)
every_stream = pytest.mark.parametrize("output", [name for name in OUTPUTS if name != "png"])


def picture(i: int, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.uint8]:
    """Red and blue above, green and grey below, and a white bar that moves to the right."""
    frame = np.full((height, width, 3), 90, dtype=np.uint8)
    frame[: height // 2, : width // 2] = [210, 30, 30]
    frame[: height // 2, width // 2 :] = [30, 30, 210]
    frame[height // 2 :, : width // 2] = [30, 180, 30]
    frame[:, (4 * i) % (width - 8) : (4 * i) % (width - 8) + 8] = 255
    return frame


def begin(path: Path, output: str, fps: float = 30.0, **options: object) -> tuple[Path, Writer]:
    video_format, codec, _ = OUTPUTS[output]
    path = reserve_name(path.with_name(path.name + suffix_of(video_format)))
    options = {"width": WIDTH, "height": HEIGHT} | options
    return path, open_writer(part_of(path), fps=fps, video_format=video_format, codec=codec, **options)  # type: ignore[arg-type]


def film(path: Path, output: str, count: int, fps: float = 30.0, **options: object) -> Path:
    path, writer = begin(path, output, fps, **options)
    for i in range(count):
        writer.write(picture(i))
    assert writer.num_frames == count
    writer.close()
    return finalize(writer.part, path)


def decode(path: Path, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.uint8]:
    """All frames of a film or folder, (N, H, W, 3) RGB; a film's as ffmpeg decodes them."""
    if path.is_dir():
        files = sorted(path.iterdir())
        assert [file.name for file in files] == [f"{i:06d}.png" for i in range(len(files))]
        return np.stack([cv2.imread(str(file))[:, :, ::-1] for file in files])
    command = [find_ffmpeg(), "-v", "error", "-i", str(path), "-fps_mode", "passthrough"]
    command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    return np.frombuffer(done.stdout, dtype=np.uint8).reshape(-1, height, width, 3)


def difference(frame: NDArray[np.uint8], other: NDArray[np.uint8]) -> float:
    return float(np.abs(frame.astype(int) - other).mean())


@every_output
@pytest.mark.parametrize("quality", list(Quality))
def test_an_output_holds_what_was_filmed(tmp_path: Path, output: str, quality: Quality) -> None:
    path = film(tmp_path / "film", output, 20, quality=quality)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    frames = decode(path)
    assert frames.shape == (20, HEIGHT, WIDTH, 3)
    assert max(difference(frames[i], picture(i)) for i in range(20)) < (0.01 if output == "png" else 7)
    for x, y in ((150, 10), (150, 80), (70, 10), (70, 80)):  # in the middle of a colour, and where no bar is
        assert np.abs(frames[0, y, x].astype(int) - picture(0)[y, x]).max() < 25
    file = path if path.is_file() else path / "000000.png"
    assert OUTPUTS[output][2] in describe(file)
    assert f"{WIDTH}x{HEIGHT}" in describe(file)
    if path.suffix == ".mp4":
        assert boxes(path).index("moov") < boxes(path).index("mdat")
        assert "moof" not in boxes(path)
    if path.suffix == ".webm":
        data = path.read_bytes()
        assert data.index(b"\x1c\x53\xbb\x6b") < data.index(b"\x1f\x43\xb6\x75")  # the index before the first cluster


@every_stream
@pytest.mark.parametrize(("count", "fps"), [(1, 30.0), (40, 29.97), (31, 12.5), (20, 50.0), (3, 1.0)])
def test_an_output_keeps_time(tmp_path: Path, output: str, count: int, fps: float) -> None:
    path = film(tmp_path / "film", output, count, fps)
    assert len(decode(path)) == count
    assert duration(path) == pytest.approx(count / fps, abs=0.011)  # as finely as it is told


def test_one_picture_is_a_folder_too(tmp_path: Path) -> None:
    assert len(decode(film(tmp_path / "film", "png", 1))) == 1


@pytest.mark.parametrize("output", ["h265", "av1", "webm"])
def test_fast_films(tmp_path: Path, output: str) -> None:
    path = film(tmp_path / "film", output, 60, 600.0)
    assert len(decode(path)) == 60
    assert duration(path) == pytest.approx(0.1, abs=0.011)


def gif_delays(path: Path) -> list[int]:
    """How long each picture is shown (1/100 s)."""
    found = re.findall(rb"\x21\xf9\x04.(..).\x00", path.read_bytes(), re.DOTALL)
    return [int.from_bytes(delay, "little") for delay in found]


def test_a_gif_shows_each_frame_until_the_hundredth_nearest_to_its_end(tmp_path: Path) -> None:
    assert gif_delays(film(tmp_path / "film", "gif", 9)) == [3, 4, 3, 3, 4, 3, 3, 4, 3]


def test_a_gif_of_a_still_scene_has_all_its_frames(tmp_path: Path) -> None:
    path, writer = begin(tmp_path / "film", "gif")
    for _ in range(30):
        writer.write(picture(0))
    writer.close()
    assert len(decode(finalize(writer.part, path))) == 30
    assert duration(path) == pytest.approx(1.0)


def test_a_gif_is_no_faster_than_viewers_play_it(tmp_path: Path) -> None:
    gif = VideoFormat.GIF
    assert [limit_fps(fps, gif) for fps in (12.5, 30.0, 50.0, 60.0, 100.0, 120.0)] == [12.5, 30, 50, 30, 50, 40]
    assert limit_fps(1000.0, VideoFormat.MP4) == 1000.0
    with pytest.raises(ValueError, match=r"at most 50 in gif.*found 60"):
        begin(tmp_path / "film", "gif", 60.0)


@pytest.mark.parametrize(
    ("video_format", "codec", "words"),
    [
        (VideoFormat.MP4, Codec.VP9, "h264, h265, av1 in mp4, found vp9"),
        (VideoFormat.WEBM, Codec.H264, "vp9, av1 in webm, found h264"),
        (VideoFormat.GIF, Codec.AV1, "none in gif, found av1"),
    ],
)
def test_a_codec_that_does_not_fit_is_refused(
    tmp_path: Path, video_format: VideoFormat, codec: Codec, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        open_writer(tmp_path / "x.part", width=64, height=64, fps=30.0, video_format=video_format, codec=codec)
    assert not list(tmp_path.iterdir())


@every_stream
def test_odd_sizes_are_refused_but_for_pictures(tmp_path: Path, output: str) -> None:
    with pytest.raises(ValueError, match="even numbers, found 161x96"):
        begin(tmp_path / "film", output, width=161)
    assert begin(tmp_path / "frames", "png", width=161)[1].num_frames == 0


@pytest.mark.parametrize("output", OUTPUTS)
def test_frames_of_another_size_are_refused(tmp_path: Path, output: str) -> None:
    _, writer = begin(tmp_path / "film", output)
    with pytest.raises(ValueError, match=r"\(96, 160, 3\).*\(48, 80, 3\)"):
        writer.write(picture(0, 80, 48))
    writer.abort()


# ---------------------------------------------------------------------- what is left when something breaks


@every_stream
def test_the_part_of_a_killed_encoder_plays(tmp_path: Path, output: str) -> None:
    path, writer = begin(tmp_path / "film", output)
    assert isinstance(writer, FrameWriter)
    rng, noise = np.random.default_rng(0), 0
    while writer.part.stat().st_size < 150_000:
        frame = picture(noise)
        frame[40:60] = rng.integers(0, 255, (20, WIDTH, 3))
        writer.write(frame)
        noise += 1
        assert noise < 5000
    writer._process.send_signal(signal.SIGKILL)
    writer._process.wait()
    with pytest.raises(VideoError, match="ffmpeg was killed by signal 9"):
        writer.close()
    writer.abort()
    assert [p.name for p in tmp_path.iterdir()] == [path.name + ".part"]
    command = [find_ffmpeg(), "-v", "quiet", "-i", str(writer.part), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    data = subprocess.run(command, capture_output=True, check=False).stdout
    frames = np.frombuffer(data, dtype=np.uint8).reshape(-1, HEIGHT, WIDTH, 3)
    assert 20 < len(frames) <= noise
    assert difference(frames[5, :40], picture(5)[:40]) < 15


def test_an_aborted_folder_stays_a_part(tmp_path: Path) -> None:
    path, writer = begin(tmp_path / "film", "png")
    writer.write(picture(0))
    writer.abort()
    discard_part(writer.part)  # holds a frame
    assert [p.name for p in tmp_path.iterdir()] == ["film.part"]
    assert len(decode(part_of(path))) == 1


@every_output
def test_a_part_without_frames_is_discarded(tmp_path: Path, output: str) -> None:
    _, writer = begin(tmp_path / "film", output)
    writer.abort()
    discard_part(writer.part)
    discard_part(writer.part)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("output", ["webm", "gif", "mp4"])
def test_a_part_that_is_no_film_stays(tmp_path: Path, output: str) -> None:
    path = tmp_path / f"film.{output}"
    part_of(path).write_bytes(b"not a film" * 100)
    with pytest.raises(VideoError, match=rf"film\.{output}: ffmpeg: .*; the film is in .*part"):
        finalize(part_of(path), path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name + ".part"]


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.name != "posix" or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting needs privileges")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("output", ["h265", "webm", "webm-av1", "gif", "png"])
def test_a_full_disk_is_named(tmp_path: Path, output: str) -> None:
    rng = np.random.default_rng(0)
    with small_disk(tmp_path / "small", "100k") as small:
        path, writer = begin(small / "film", output)
        with pytest.raises(VideoError, match="No space left"):
            for _ in range(2000):
                writer.write(rng.integers(0, 255, (HEIGHT, WIDTH, 3)).astype(np.uint8))
        writer.abort()
        assert [p.name for p in small.iterdir()] == [path.name + ".part"]
        assert not list(small.rglob("*.tmp"))


def test_a_full_disk_when_the_gif_is_made_leaves_the_part(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "256k") as small:
        path, writer = begin(small / "film", "gif")
        for i in range(30):
            writer.write(picture(i))
        writer.close()
        (small / "ballast").write_bytes(bytes(256 * 1024 - writer.part.stat().st_size - 12_000))
        with pytest.raises(VideoError, match=r"film\.gif: ffmpeg: .*No space left.*; the film is in"):
            finalize(writer.part, path)
        assert sorted(p.name for p in small.iterdir()) == ["ballast", "film.gif.part"]


# ---------------------------------------------------------------------- names


def test_names_of_folders(tmp_path: Path) -> None:
    paths = [film(tmp_path / "walk.v1.5", "png", 1 + i) for i in range(3)]
    assert [path.name for path in paths] == ["walk.v1.5", "walk.v1.5_001", "walk.v1.5_002"]
    assert [len(decode(path)) for path in paths] == [1, 2, 3]
    assert beside(paths[0], ".json").name == "walk.v1.5.json"
    assert beside(tmp_path / "a.b.MP4", ".png").name == "a.b.png"
    assert [format_of(Path("a" + suffix_of(kind))) for kind in VideoFormat] == list(VideoFormat)


def test_films_of_one_name_and_several_formats_share_no_side_file(tmp_path: Path) -> None:
    names = [reserve_name(tmp_path / name).name for name in ("a.mp4", "a.webm", "a", "a.trace", "a.trace")]
    assert names == ["a.mp4", "a_001.webm", "a_002", "a.trace", "a_001.trace"]
    (tmp_path / "b.png").write_bytes(b"somebody's picture")
    assert free_name(tmp_path / "b.mp4").name == "b_001.mp4"


@pytest.mark.parametrize("content", ["file", "folder", "full folder"])
def test_a_folder_named_so_while_filming_is_not_written_over(tmp_path: Path, content: str) -> None:
    path, writer = begin(tmp_path / "film", "png")
    writer.write(picture(0))
    if content == "file":
        path.write_text("mine")
    else:
        path.mkdir()
    if content == "full folder":
        (path / "mine").write_text("mine")
    before = sorted(path.rglob("*"))
    final = finalize(writer.part, path)
    assert (final.name, len(decode(final))) == ("film_001", 1)
    assert sorted(path.rglob("*")) == before


# ---------------------------------------------------------------------- encoders


@pytest.fixture
def fresh_encoders() -> Iterator[None]:
    """Nothing is remembered of ffmpeg, before and after."""
    caches = (find_ffmpeg, encoders._known_encoders, encoders._why_not)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("output", ["mp4", "h265", "av1"])
def test_without_nvenc_the_cpu_encodes_and_a_note_says_so(
    tmp_path: Path, output: str, monkeypatch: pytest.MonkeyPatch, fresh_encoders: None
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    path, writer = begin(tmp_path / "film", output, hardware=True)
    (note,) = writer.notes
    assert re.fullmatch(r"hardware: NVENC asked for; not here \(.{8,200}\); encoded on the CPU", note), note
    writer.write(picture(0))
    writer.close()
    assert OUTPUTS[output][2] in describe(finalize(writer.part, path))


@pytest.mark.parametrize(("output", "words"), [("webm", "it has no vp9"), ("gif", "gif"), ("png", "png")])
def test_what_no_gpu_encodes_is_noted(tmp_path: Path, output: str, words: str) -> None:
    _, writer = begin(tmp_path / "film", output, hardware=True)
    assert len(writer.notes) == 1
    assert words in writer.notes[0]
    writer.abort()


def test_with_hardware_a_film_is_what_it_would_be_without(tmp_path: Path) -> None:
    """On the GPU where there is one that encodes, else on the CPU."""
    path = film(tmp_path / "film", "mp4", 20, hardware=True)
    frames = decode(path)
    assert len(frames) == 20
    assert difference(frames[9], picture(9)) < 7


@pytest.mark.parametrize(("lacking", "found"), [("libsvtav1", True), ("libsvtav1|libaom-av1", False)])
def test_an_ffmpeg_that_lacks_an_encoder(
    tmp_path: Path, lacking: str, found: bool, monkeypatch: pytest.MonkeyPatch, fresh_encoders: None
) -> None:
    poorer = tmp_path / "ffmpeg"
    poorer.write_text(
        f"#!/bin/bash\nif [[ $* == *-encoders ]]; then {shlex.quote(find_ffmpeg())} \"$@\" | grep -vE '{lacking}'\n"
        f'else exec {shlex.quote(find_ffmpeg())} "$@"; fi\n'
    )
    poorer.chmod(0o755)
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", str(poorer))
    find_ffmpeg.cache_clear()
    if found:
        assert len(decode(film(tmp_path / "film", "av1", 10))) == 10
    else:
        with pytest.raises(VideoError, match=r"av1 needs libsvtav1 or libaom-av1, which .*ffmpeg lacks; pip install"):
            begin(tmp_path / "film", "av1")


# ---------------------------------------------------------------------- poster


def test_a_poster_is_from_near_the_middle_of_a_film_of_any_length() -> None:
    poster, most = Poster(), 0
    frame = np.zeros((16, 16, 3), dtype=np.uint8)
    for count in range(1, 2000):
        poster.see(frame)
        most = max(most, len(poster._kept))
        assert abs(poster.index - (count - 1) / 2) <= max(0.5, count / 15)
    assert most <= 6


def test_a_poster_is_the_frame_that_it_says(tmp_path: Path) -> None:
    poster, frame = Poster(), picture(0)
    for i in range(100):
        frame[:] = picture(i)  # one array for all frames, as a renderer has
        poster.see(frame)
    path = poster.save(tmp_path / "film.png")
    assert np.array_equal(cv2.imread(str(path))[:, :, ::-1], picture(poster.index))
    assert poster.save(tmp_path / "film.png").name == "film_001.png"  # nothing is written over
    assert sorted(p.name for p in tmp_path.iterdir()) == ["film.png", "film_001.png"]


def test_a_poster_that_can_not_be_written_says_where(tmp_path: Path) -> None:
    poster = Poster()
    with pytest.raises(ValueError, match="at least one frame"):
        poster.save(tmp_path / "film.png")
    poster.see(picture(0))
    (tmp_path / "file").write_text("")
    with pytest.raises(VideoError, match=r"file/film\.png: Not a directory"):
        poster.save(tmp_path / "file" / "film.png")
