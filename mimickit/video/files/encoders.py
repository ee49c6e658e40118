"""The command lines of ffmpeg: how each format is filmed, and how a complete part becomes the file that is kept.

While a clip is filmed its part plays, whatever kills the process: mp4 is fragmented, webm is a stream anyway. A gif
needs the whole film before it can choose its colours; its part is a nearly lossless mp4. A complete part is copied,
not encoded again, into a file with its index in front; only a gif is made anew.
"""

import functools
import math
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mimickit.video.config import CODECS, Codec, Quality, VideoFormat
from mimickit.video.errors import VideoError

_QUIET = ("-hide_banner", "-loglevel", "error")
_KEYFRAME_SECONDS = 2.0  # a viewer can jump to, and a killed encoder loses at most, this much
_GIF_MAX_FPS = 50.0  # a gif counts in 1/100 s, and viewers slow down what is shown for less than two of them
_PROBE_TIMEOUT = 60.0  # s
_COLOURS = "-color_range tv -colorspace smpte170m -color_primaries smpte170m -color_trc smpte170m"
_SPEAKER = re.compile(r"^(\[[^]]* @ 0x[0-9a-f]+\] *)+")  # [out#0/mp4 @ 0x5581], in front of what it says
_ENVIRONMENT = {"SVT_LOG": "1"}  # libsvtav1 has a log level of its own: errors only


@dataclass(frozen=True)
class _Encoder:
    """An encoder of ffmpeg and its words for each quality."""

    name: str
    draft: str
    standard: str
    high: str
    more: str = ""
    max_fps: float = math.inf

    def words(self, quality: Quality) -> list[str]:
        return f"-c:v {self.name} {getattr(self, quality.value)} {self.more}".split()


# The crf of each were chosen to look alike; the presets so that standard keeps up with the renderer on two cores.
_ENCODERS: dict[Codec, tuple[_Encoder, ...]] = {
    Codec.H264: (
        _Encoder("libx264", "-preset ultrafast -crf 25", "-preset veryfast -crf 21", "-preset medium -crf 18"),
    ),
    Codec.H265: (
        _Encoder(
            "libx265", "-preset ultrafast -crf 26", "-preset superfast -crf 23", "-preset medium -crf 20",
            "-tag:v hvc1 -x265-params log-level=error:open-gop=0",  # Apple's players want the tag
        ),
    ),
    Codec.AV1: (
        _Encoder("libsvtav1", "-preset 12 -crf 40", "-preset 8 -crf 36", "-preset 6 -crf 26", max_fps=240.0),
        _Encoder(
            "libaom-av1", "-cpu-used 8 -crf 40", "-cpu-used 8 -crf 32", "-cpu-used 7 -crf 26",
            "-usage realtime -row-mt 1 -b:v 0",
        ),
    ),
    Codec.VP9: (
        _Encoder(
            "libvpx-vp9", "-cpu-used 8 -crf 36", "-cpu-used 6 -crf 31", "-cpu-used 5 -crf 25",
            "-deadline realtime -row-mt 1 -b:v 0",
        ),
    ),
}  # fmt: skip
_GIF_PART = "-c:v libx264 -preset veryfast -crf 10"
_NVENC_WORDS = ("-preset p2 -cq 30", "-preset p4 -cq 25", "-preset p6 -cq 21", "-rc vbr -b:v 0")
_NVENC = {
    Codec.H264: _Encoder("h264_nvenc", *_NVENC_WORDS),
    Codec.H265: _Encoder("hevc_nvenc", *_NVENC_WORDS[:3], f"{_NVENC_WORDS[3]} -tag:v hvc1"),
    Codec.AV1: _Encoder("av1_nvenc", *_NVENC_WORDS),
}


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


def environment() -> dict[str, str]:
    """The environment variables that ffmpeg is started with."""
    return {**os.environ, **_ENVIRONMENT}


def limit_fps(fps: float, video_format: VideoFormat) -> float:
    """The frame rate that a format can hold: fps, but at most 50 in a gif, which takes every second, third, ...
    frame of a faster film. Any rate up to 50 is kept: frames of 30 fps are shown for 3, 3 and 4 hundredths of a second.
    """
    if video_format is not VideoFormat.GIF:
        return fps
    return fps / max(1, math.ceil(fps / _GIF_MAX_FPS - 1e-6))


def film_command(
    part: Path,
    *,
    width: int,
    height: int,
    fps: float,
    quality: Quality,
    video_format: VideoFormat,
    codec: Codec | None,
    hardware: bool,
) -> tuple[list[str], list[str]]:
    """Films frames in planes of yuv420p from standard input into the part; and notes: what was asked for and could
    not be had. Raises ValueError for what no such file can hold, VideoError where the encoder is missing.
    """
    _check(width, height, fps, video_format, codec)
    if video_format is VideoFormat.GIF:
        encoder = _GIF_PART.split()
        notes = ["hardware: gif asked for, which the CPU encodes"] if hardware else []
    else:
        codec = codec or CODECS[video_format][0]
        encoder, notes = _choose_encoder(codec, quality, width, height, fps, hardware)
    gop = max(1, round(_KEYFRAME_SECONDS * fps))
    if video_format is VideoFormat.WEBM:
        container = f"-cluster_time_limit {_KEYFRAME_SECONDS * 1000:.0f} -f webm"
    else:
        container = "-movflags +frag_keyframe+empty_moov+default_base_moof+negative_cts_offsets -f mp4"
    source = f"-f rawvideo -pix_fmt yuv420p -s {width}x{height} -r {fps:.6g} -i pipe:0 -an"
    rest = f"-pix_fmt yuv420p -g {gop} {_COLOURS} {container} -flush_packets 1"
    return [find_ffmpeg(), *_QUIET, "-y", *source.split(), *encoder, *rest.split(), f"file:{part}"], notes


def copy_command(part: Path, whole: Path, video_format: VideoFormat) -> list[str]:
    """Copies a complete part into a plain mp4 or webm with its index in front."""
    index = "-movflags +faststart" if video_format is VideoFormat.MP4 else "-cues_to_front 1"
    kind = video_format.value
    words = f"-c copy {index} -f {kind}"
    return [find_ffmpeg(), *_QUIET, "-y", "-f", kind, "-i", f"file:{part}", *words.split(), f"file:{whole}"]


def palette_command(part: Path) -> list[str]:
    """Writes the 256 colours that suit the film best, a png, to standard output. One pass for the colours and one
    for the gif: a single command would hold the whole film in memory.
    """
    words = "-vf palettegen -frames:v 1 -c:v png -f image2pipe pipe:1"
    return [find_ffmpeg(), *_QUIET, "-f", "mp4", "-i", f"file:{part}", *words.split()]


def gif_command(part: Path, whole: Path) -> list[str]:
    """Makes the gif, with the palette from standard input."""
    palette = "-f png_pipe -i pipe:0 -lavfi paletteuse=dither=sierra2_4a:diff_mode=rectangle"
    words = f"{palette} -loop 0 -f gif"
    return [find_ffmpeg(), *_QUIET, "-y", "-f", "mp4", "-i", f"file:{part}", *words.split(), f"file:{whole}"]


def cause_of(code: int | None, said: bytes, error: Exception | None = None) -> str:
    """Why ffmpeg failed: how it ended, what it said first (the rest follows from it), or else the error that was
    met.
    """
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    if code is not None and code < 0:
        return f"ffmpeg was killed by signal {-code}"
    if lines:
        return f"ffmpeg: {_SPEAKER.sub('', lines[0])}"
    if error is not None:
        return str(getattr(error, "strerror", None) or error)
    return f"ffmpeg ended with code {code}"


def _check(width: int, height: int, fps: float, video_format: VideoFormat, codec: Codec | None) -> None:
    if width % 2 or height % 2:
        raise ValueError(f"frame size: {video_format.value} needs even numbers, found {width}x{height}")
    if codec is not None and codec not in CODECS[video_format]:
        expected = ", ".join(known.value for known in CODECS[video_format]) or "none"
        raise ValueError(f"codec: expected {expected} in {video_format.value}, found {codec.value}")
    if limit_fps(fps, video_format) < fps:
        raise ValueError(f"fps: expected at most {_GIF_MAX_FPS:g} in {video_format.value} (limit_fps), found {fps:g}")


def _choose_encoder(
    codec: Codec, quality: Quality, width: int, height: int, fps: float, hardware: bool
) -> tuple[list[str], list[str]]:
    """Words of the command line, and notes."""
    notes: list[str] = []
    if hardware:
        reason = f"it has no {codec.value}"
        if codec in _NVENC:
            words = _NVENC[codec].words(quality)
            reason = _why_not(find_ffmpeg(), tuple(words), f"{width}x{height}")
            if not reason:
                return words, notes
        notes.append(f"hardware: NVENC asked for; not here ({reason}); encoded on the CPU")
    there = [encoder for encoder in _ENCODERS[codec] if encoder.name in _known_encoders(find_ffmpeg())]
    if not there:
        names = " or ".join(encoder.name for encoder in _ENCODERS[codec])
        raise VideoError(
            f"codec: {codec.value} needs {names}, which {find_ffmpeg()} lacks; pip install -U imageio-ffmpeg brings it"
        )
    encoder = next((encoder for encoder in there if fps <= encoder.max_fps), there[0])
    return encoder.words(quality), notes


@functools.cache
def _known_encoders(ffmpeg: str) -> frozenset[str]:
    """Names of the encoders that this ffmpeg was built with."""
    done = subprocess.run(
        [ffmpeg, *_QUIET, "-encoders"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    lines: Iterable[list[str]] = (line.split() for line in done.stdout.splitlines())
    return frozenset(words[1] for words in lines if len(words) > 1)


@functools.cache
def _why_not(ffmpeg: str, words: tuple[str, ...], size: str) -> str:
    """Why an encoder of the GPU can't be used for frames of this size; empty if it has encoded one."""
    if words[1] not in _known_encoders(ffmpeg):
        return f"this ffmpeg was built without {words[1]}"
    source = f"-f lavfi -i color=s={size} -frames:v 1 -pix_fmt yuv420p"
    command = [ffmpeg, *_QUIET, *source.split(), *words, "-f", "null", "-"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PROBE_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_PROBE_TIMEOUT:g} s"
    return cause_of(done.returncode, done.stderr) if done.returncode else ""
