"""Streams frames to ffmpeg as H.264, and gives the file its name only when it is complete.

While a clip is filmed it is a fragmented MP4 called <name>.mp4.part: whatever kills the process, what was
written until then plays. When it is complete it is copied, not encoded again, into a plain MP4 with its index
in front.
"""

import contextlib
import errno
import functools
import os
import subprocess
import tempfile
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from mimickit.video.config import Quality
from mimickit.video.errors import VideoError

PART_SUFFIX = ".part"

_PRESETS = {
    Quality.DRAFT: ("ultrafast", 25),
    Quality.STANDARD: ("veryfast", 21),
    Quality.HIGH: ("medium", 18),
}
_QUIET = ("-hide_banner", "-loglevel", "error")
_KEYFRAME_SECONDS = 2.0  # a viewer can jump to, and a killed process loses at most, this much
_PIPE_BYTES = 1 << 20  # the most that Linux gives a pipe without privilege
_END_TIMEOUT = 120.0  # s for ffmpeg to finish what it was given


@functools.cache
def find_ffmpeg() -> str:
    """Path of the encoder: the one that imageio-ffmpeg brings, IMAGEIO_FFMPEG_EXE, or the system's. Raises
    VideoError.
    """
    try:
        import imageio_ffmpeg

        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except (ImportError, RuntimeError) as error:
        raise VideoError(f"no ffmpeg to encode with ({error}); pip install imageio-ffmpeg") from error


class FrameWriter:
    """Writes one clip. write() blocks while ffmpeg is behind; nothing is kept and nothing is dropped.

    Every method raises VideoError with the cause when ffmpeg or the disk fails.
    """

    def __init__(self, part: Path, *, width: int, height: int, fps: float, quality: Quality = Quality.STANDARD) -> None:
        """part is the file to write while filming; width and height are even (pixels)."""
        if width % 2 or height % 2:
            raise ValueError(f"frame size: H.264 needs even numbers, found {width}x{height}")
        self.part = part
        self.num_frames = 0
        self._shape = (height, width, 3)
        self._planes = np.empty((height * 3 // 2, width), dtype=np.uint8)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as ffmpeg lives
        try:
            self._process = subprocess.Popen(
                _encode_command(part, width, height, fps, quality),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,  # the terminal's Ctrl-C is not for the encoder
                bufsize=0,
            )
        except OSError as error:
            self._errors.close()
            raise VideoError(f"{part}: can't be written: {error.strerror or error}") from error
        assert self._process.stdin is not None
        self._pipe: IO[bytes] = self._process.stdin
        _enlarge_pipe(self._pipe)

    def write(self, frame: NDArray[np.uint8]) -> None:
        """Append one RGB frame (height, width, 3) uint8; the array may be reused when the call returns."""
        if frame.shape != self._shape:
            raise ValueError(f"frame: expected shape {self._shape}, found {frame.shape}")
        import cv2

        # a third of the work of ffmpeg's own conversion, and half the bytes through the pipe
        cv2.cvtColor(frame, cv2.COLOR_RGB2YUV_I420, dst=self._planes)
        rest = memoryview(self._planes.data).cast("B")
        try:
            while rest:
                rest = rest[self._pipe.write(rest) or 0 :]
        except (OSError, ValueError) as error:
            self._fail(error)
        self.num_frames += 1

    def close(self) -> None:
        """End the part: it holds all frames when this returns."""
        try:
            with contextlib.suppress(BrokenPipeError):
                self._pipe.close()
            code = self._process.wait(_END_TIMEOUT)
        except (OSError, subprocess.TimeoutExpired) as error:
            self._fail(error)
        if code != 0:
            self._fail(None)
        self._errors.close()

    def abort(self) -> None:
        """Stop without complaint; what was written stays in the part. May be called after any failure."""
        with contextlib.suppress(OSError):
            self._pipe.close()
        try:
            self._process.wait(5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()

    def _fail(self, error: Exception | None) -> None:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            self._pipe.close()
            self._process.wait(5.0)
        raise VideoError(f"{self.part}: {_cause(self._process.poll(), self._errors, error)}") from error


def finalize(part: Path, final: Path) -> Path:
    """Turn the complete part into a plain MP4 with its index in front, named final; returns the name it
    has.

    A file that exists is never written over: the name then gets a number. The part is gone afterwards. Raises
    VideoError, with the part left in place.
    """
    whole = part.with_name(part.name + ".tmp")
    try:
        with tempfile.TemporaryFile() as errors:
            words = "-c copy -movflags +faststart -f mp4"
            command = [
                find_ffmpeg(),
                *_QUIET,
                "-y",
                "-f",
                "mp4",
                "-i",
                f"file:{part}",
                *words.split(),
                f"file:{whole}",
            ]
            process = subprocess.run(
                command, stdin=subprocess.DEVNULL, stderr=errors, start_new_session=True, check=False
            )
            code = process.returncode
            if code != 0:
                raise VideoError(f"{final}: {_cause(code, errors, None)}; the film is in {part}")
        name = _give_name(whole, final)
        part.unlink()
        return name
    except OSError as error:
        raise VideoError(f"{final}: {error.strerror or error}; the film is in {part}") from error
    finally:
        with contextlib.suppress(OSError):
            whole.unlink(missing_ok=True)


def reserve_name(path: Path) -> Path:
    """Choose the name of a clip: path, or path with a number where it is taken; its part is created empty, so
    that no other process chooses the same, and so is its folder. Raises VideoError where nothing can be
    written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        while True:
            name = free_name(path)
            with contextlib.suppress(FileExistsError):
                part_of(name).open("xb").close()
                return name
    except OSError as error:
        raise VideoError(f"{path}: can't be written: {error.strerror or error}") from error


def free_name(path: Path) -> Path:
    """path, or the first of <stem>_001, _002, ... of which there is neither clip, part nor side file."""
    number, candidate = 0, path
    while any(p.exists() for p in (candidate, part_of(candidate), candidate.with_suffix(".json"))):
        number += 1
        candidate = path.with_name(f"{path.stem}_{number:03d}{path.suffix}")
    return candidate


def part_of(path: Path) -> Path:
    """What a clip is called while it is filmed."""
    return path.with_name(path.name + PART_SUFFIX)


def _give_name(source: Path, final: Path) -> Path:
    name = final
    while True:
        try:
            os.link(source, name)  # unlike a rename, fails if the name is taken
            return name
        except FileExistsError:
            name = free_name(final)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EMLINK, errno.ENOSYS, errno.EACCES):
                raise
            name = free_name(name)  # a file system without links
            source.rename(name)
            return name


def _encode_command(part: Path, width: int, height: int, fps: float, quality: Quality) -> list[str]:
    preset, crf = _PRESETS[quality]
    gop = max(1, round(_KEYFRAME_SECONDS * fps))
    flags = "+frag_keyframe+empty_moov+default_base_moof+negative_cts_offsets"
    words = (
        f"-f rawvideo -pix_fmt yuv420p -s {width}x{height} -r {fps:.6g} -i pipe:0 "
        f"-an -c:v libx264 -preset {preset} -crf {crf} -pix_fmt yuv420p -g {gop} "
        "-color_range tv -colorspace smpte170m -color_primaries smpte170m -color_trc smpte170m "
        f"-movflags {flags} -flush_packets 1 -f mp4"
    )
    return [find_ffmpeg(), *_QUIET, "-y", *words.split(), f"file:{part}"]


def _enlarge_pipe(pipe: IO[bytes]) -> None:
    """Let ffmpeg's pipe hold a whole frame, where the system can: fewer switches between processes."""
    try:
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        return


def _cause(code: int | None, errors: IO[bytes], error: Exception | None) -> str:
    """What ffmpeg said last, or how it ended."""
    lines: list[str] = []
    with contextlib.suppress(OSError, ValueError):
        errors.seek(0)
        lines = [line for line in errors.read().decode(errors="replace").splitlines() if line.strip()]
    if code is not None and code < 0:
        return f"ffmpeg was killed by signal {-code}"
    if lines:
        return f"ffmpeg: {lines[-1].strip()}"
    if error is not None:
        return str(getattr(error, "strerror", None) or error)
    return f"ffmpeg ended with code {code}"
