"""Streams frames to ffmpeg or into a folder, and gives the clip its name only when it is complete."""

import contextlib
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Protocol

import numpy as np
from numpy.typing import NDArray

from mimickit.video.config import Codec, Quality, VideoFormat
from mimickit.video.errors import VideoError
from mimickit.video.files.encoders import (
    cause_of,
    copy_command,
    environment,
    film_command,
    find_ffmpeg,
    gif_command,
    limit_fps,
    palette_command,
)
from mimickit.video.files.frame_folder import FrameFolder
from mimickit.video.files.names import (
    beside,
    discard_part,
    format_of,
    free_name,
    give_name,
    part_of,
    reserve_name,
    suffix_of,
)

__all__ = [
    "FrameFolder",
    "FrameWriter",
    "Writer",
    "beside",
    "discard_part",
    "finalize",
    "find_ffmpeg",
    "format_of",
    "free_name",
    "limit_fps",
    "open_writer",
    "part_of",
    "reserve_name",
    "suffix_of",
]

_PIPE_BYTES = 1 << 20  # the most that Linux gives a pipe without privilege
_END_TIMEOUT = 600.0  # s for ffmpeg to finish what it was given: dozens of frames, which a slow codec looks ahead at


class Writer(Protocol):
    """Writes the frames of one clip into its part. Every method raises VideoError with the cause."""

    part: Path
    num_frames: int
    notes: list[str]  # what was asked for and could not be had

    def write(self, frame: NDArray[np.uint8]) -> None:
        """Append one RGB frame (height, width, 3) uint8; the array may be reused when the call returns."""

    def close(self) -> None:
        """End the part: it holds all frames when this returns."""

    def abort(self) -> None:
        """Stop without complaint; what was written stays in the part. May be called after any failure."""


def open_writer(
    part: Path,
    *,
    width: int,
    height: int,
    fps: float,
    quality: Quality = Quality.STANDARD,
    video_format: VideoFormat = VideoFormat.MP4,
    codec: Codec | None = None,
    hardware: bool = False,
) -> Writer:
    """Begin a clip of any format. Arguments and errors are FrameWriter's; a folder of frames takes odd sizes too."""
    if video_format is VideoFormat.PNG:
        return FrameFolder(part, width=width, height=height, hardware=hardware)
    return FrameWriter(
        part, width=width, height=height, fps=fps, quality=quality, video_format=video_format, codec=codec,
        hardware=hardware,
    )  # fmt: skip


class FrameWriter:
    """Writes one clip. write() blocks while ffmpeg is behind; nothing is kept and nothing is dropped.

    Every method raises VideoError with the cause when ffmpeg or the disk fails.
    """

    def __init__(
        self,
        part: Path,
        *,
        width: int,
        height: int,
        fps: float,
        quality: Quality = Quality.STANDARD,
        video_format: VideoFormat = VideoFormat.MP4,
        codec: Codec | None = None,
        hardware: bool = False,
    ) -> None:
        """Begin a clip.

        Args:
            part: the file to write while filming.
            width, height: even (pixels).
            fps: as the file is to have it; of a gif at most 50 (see limit_fps).
            video_format: mp4, webm or gif.
            codec: one that the format may hold, None for its first.
            hardware: encode on the GPU; where that can't be done, notes say why and the CPU does it.

        Raises ValueError for what the format can't hold.
        """
        self.part = part
        self.num_frames = 0
        self._shape = (height, width, 3)
        self._planes = np.empty((height * 3 // 2, width), dtype=np.uint8)
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - as long as ffmpeg lives
        try:
            command, self.notes = film_command(
                part, width=width, height=height, fps=fps, quality=quality, video_format=video_format, codec=codec,
                hardware=hardware,
            )  # fmt: skip
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,  # the terminal's Ctrl-C is not for the encoder
                bufsize=0,
                env=environment(),
            )
        except OSError as error:
            self._errors.close()
            raise VideoError(f"{part}: can't be written: {error.strerror or error}") from error
        except Exception:
            self._errors.close()
            raise
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
        said = b""
        with contextlib.suppress(OSError, ValueError):
            self._errors.seek(0)
            said = self._errors.read()
        raise VideoError(f"{self.part}: {cause_of(self._process.poll(), said, error)}") from error


def finalize(part: Path, final: Path) -> Path:
    """Turn the complete part into the clip, named final; returns the name it has. final's suffix says what it
    is: a plain .mp4 or .webm with its index in front, a .gif, or else a folder.

    Nothing that exists is written over: the name then gets a number. The part is gone afterwards. Raises
    VideoError, with the part left in place.
    """
    whole = part.with_name(part.name + ".tmp")
    try:
        if (video_format := format_of(final)) is VideoFormat.PNG:
            return give_name(part, final)
        if video_format is VideoFormat.GIF:
            _run(gif_command(part, whole), _run(palette_command(part)))
        else:
            _run(copy_command(part, whole, video_format))
        name = give_name(whole, final)
        part.unlink()
        return name
    except OSError as error:
        raise VideoError(f"{final}: {error.strerror or error}; the film is in {part}") from error
    except VideoError as error:
        raise VideoError(f"{final}: {error}; the film is in {part}") from error
    finally:
        with contextlib.suppress(OSError):
            whole.unlink(missing_ok=True)


def _run(command: list[str], given: bytes = b"") -> bytes:
    """What ffmpeg writes to standard output when it is given these bytes. Raises VideoError."""
    done = subprocess.run(command, input=given, capture_output=True, start_new_session=True, check=False)
    if done.returncode != 0:
        raise VideoError(cause_of(done.returncode, done.stderr))
    return done.stdout


def _enlarge_pipe(pipe: IO[bytes]) -> None:
    """Let ffmpeg's pipe hold a whole frame, where the system can: fewer switches between processes."""
    try:
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
    except (ImportError, AttributeError, OSError):
        return
