"""Numbers and playable clips in TensorBoard, without TensorFlow."""

import logging
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from mimickit.loggers.base import Logger, MissingLibraryError
from mimickit.media.types import Histogram, Image, Media, Video

LOG = logging.getLogger("mimickit.loggers")
GIF_WIDTH = 427  # pixels: half of a default clip, about what the image tab shows
MAX_GIF_SECONDS = 60.0  # a longer clip would make an event file that the browser can't hold
MAX_GIF_FPS = 50.0  # browsers slow a GIF down whose frames last under 2 hundredths of a second


class TensorBoardLogger(Logger):
    """Writes an event file: numbers as scalars, clips as animated GIFs (image tab), pictures, histograms, other media
    by path. Of several media under one name the first has its tag, the others name/1, name/2, ...
    """

    NAME = "TensorBoard"
    MEDIA = (Video, Image, Histogram)

    def __init__(self, out_dir: str | Path, *, resume_at: int | None = None) -> None:
        """Open a new event file in the folder out_dir.

        Args:
            resume_at: what older files there hold past so many samples is no longer shown.
        """
        super().__init__()
        try:
            from tensorboard.compat.proto import event_pb2, histogram_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise MissingLibraryError("--logger tb needs TensorBoard: pip install tensorboard") from None
        self._event: Any = event_pb2.Event
        self._summary: Any = summary_pb2.Summary
        self._histogram_proto: Any = histogram_pb2.HistogramProto
        self._writer = EventFileWriter(str(out_dir), flush_secs=10)
        self._closed = False
        if resume_at is not None:
            restart = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
            self._writer.add_event(self._event(wall_time=time.time(), step=resume_at + 1, session_log=restart))

    def _write_row(self, row: Mapping[str, float], step: int) -> None:
        self._add([self._summary.Value(tag=key, simple_value=value) for key, value in row.items()], step)

    def _write_media(self, key: str, items: Sequence[Media], step: int) -> None:
        for number, item in enumerate(items):
            tag = f"{key}/{number}" if number else key
            self._add([self._value(tag, item)], step)
        self._writer.flush()

    def _value(self, tag: str, item: Media) -> Any:
        if isinstance(item, Video):
            if _seconds(item) <= MAX_GIF_SECONDS:
                return self._image(tag, video_to_gif(item.path, item.fps))
            LOG.warning("TensorBoard logger: %s is longer than %g s; its path is logged", item.path, MAX_GIF_SECONDS)
        elif isinstance(item, Image):
            return self._image(tag, item.path.read_bytes())
        elif isinstance(item, Histogram):
            return self._summary.Value(tag=tag, histo=self._histogram(*item.read()))
        return self._text(tag, f"{item.caption} {item.path}".strip())

    def _image(self, tag: str, data: bytes) -> Any:
        width, height = image_size(data)
        image = self._summary.Image(width=width, height=height, colorspace=3, encoded_image_string=data)
        return self._summary.Value(tag=tag, image=image)

    def _histogram(self, counts: Sequence[float], edges: Sequence[float]) -> Any:
        middles = [(low + high) / 2.0 for low, high in pairwise(edges)]
        return self._histogram_proto(
            min=edges[0], max=edges[-1], num=sum(counts), bucket=counts, bucket_limit=edges[1:],
            sum=sum(count * middle for count, middle in zip(counts, middles, strict=True)),
            sum_squares=sum(count * middle**2 for count, middle in zip(counts, middles, strict=True)),
        )  # fmt: skip

    def _text(self, tag: str, text: str) -> Any:
        from tensorboard.plugins.text import metadata
        from tensorboard.util import tensor_util

        tensor = tensor_util.make_tensor_proto([text])
        meta = metadata.create_summary_metadata(display_name=tag, description="")
        return self._summary.Value(tag=f"{tag}/text_summary", metadata=meta, tensor=tensor)

    def _add(self, values: Sequence[Any], step: int) -> None:
        event = self._event(wall_time=time.time(), step=step, summary=self._summary(value=values))
        self._writer.add_event(event)

    def _close(self) -> None:
        self._writer.close()


def _seconds(video: Video) -> float:
    return (video.num_frames or 0) / video.fps if video.fps else 0.0


def video_to_gif(path: Path, fps: float | None = None, width: int = GIF_WIDTH) -> bytes:
    """An animated GIF of a clip with all its frames at its own speed, at most width pixels wide.

    Two passes (the palette first), so that memory stays flat however long the clip is. Above 50 frames a
    second every second frame is left out, since browsers do not play such GIFs at their speed.

    Raises:
        RuntimeError: ffmpeg could not read the clip; with its last words.
    """
    import imageio_ffmpeg

    ffmpeg = imageio_ffmpeg.get_ffmpeg_exe()
    rate = f"fps={fps / 2:.6g}," if fps and fps > MAX_GIF_FPS else ""
    scale = f"{rate}scale='min({width},iw)':-1:flags=area"
    with tempfile.TemporaryDirectory(prefix="mimickit_gif_") as folder:
        palette, gif = Path(folder) / "palette.png", Path(folder) / "clip.gif"
        _ffmpeg([ffmpeg, "-i", str(path), "-vf", f"{scale},palettegen", str(palette)])
        graph = f"[0:v]{scale}[v];[v][1:v]paletteuse=dither=bayer:bayer_scale=4"
        passthrough = ["-fps_mode", "passthrough"]
        _ffmpeg(
            [
                ffmpeg,
                "-i",
                str(path),
                "-i",
                str(palette),
                "-lavfi",
                graph,
                *passthrough,
                "-loop",
                "0",
                str(gif),
            ]
        )
        return gif.read_bytes()


def _ffmpeg(command: list[str]) -> None:
    command = [command[0], "-y", "-nostdin", "-loglevel", "error", *command[1:]]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ffmpeg: {done.stderr.strip().splitlines()[-1:] or done.returncode}")


def image_size(data: bytes) -> tuple[int, int]:
    """Width and height (pixels) of an encoded picture: GIF from its header, the others through opencv."""
    if data[:4] == b"GIF8":
        return int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
    import cv2
    import numpy as np

    picture = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise ValueError("expected a picture, found other bytes")
    return int(picture.shape[1]), int(picture.shape[0])
