"""Clips in the loggers of other libraries."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from mimickit.loggers.base import Logger
from mimickit.media.types import Video
from mimickit.util.keys import ConfigError
from mimickit.video.clip import Clip

LOG = logging.getLogger("mimickit.interop")


def log_clip(logger: Any, key: str, clip: Clip, step: int) -> None:
    """Write a clip to a logger: ours, Stable-Baselines3's (or imitation's), or None.

    What training has recorded in a Stable-Baselines3 logger and not yet dumped stays as it is.

    Raises:
        ConfigError: another kind of logger.
    """
    if logger is None:
        return
    if isinstance(logger, Logger):
        logger.write_media({key: [clip.to_media()]}, step)
        return
    formats = _formats_of(logger)
    if formats is None:
        raise ConfigError(
            "logger: expected a Logger of MimicKit, one of Stable-Baselines3, or None, "
            f"found {type(logger).__module__}.{type(logger).__name__}"
        )
    for output in formats:
        _write(output, key, clip, step)


def _formats_of(logger: Any) -> Sequence[Any] | None:
    """What a Stable-Baselines3 logger writes to; imitation's keeps them in its default logger."""
    formats: Sequence[Any] | None = getattr(getattr(logger, "default_logger", logger), "output_formats", None)
    return formats


def _write(output: Any, key: str, clip: Clip, step: int) -> None:
    """One format: a film where it can show one, else the path."""
    kind = type(output).__name__
    media = clip.to_media()
    if kind == "TensorBoardOutputFormat" and isinstance(media, Video):
        _write_gif(output, key, media, step)
    elif kind in ("TensorBoardOutputFormat", "HumanOutputFormat", "JSONOutputFormat"):
        output.write({key: str(clip.path)}, {key: None}, step)
    elif kind == "CSVOutputFormat":  # a row of numbers has no place for it
        LOG.info("%s is not in the CSV log: %s", key, clip.path)
    elif kind == "WandbOutputFormat" and isinstance(media, Video):
        import wandb

        film = wandb.Video(str(media.path), caption=media.caption, format=media.path.suffix[1:])
        output.write({key: film}, {key: None}, step)
    elif isinstance(media, Video):
        from stable_baselines3.common.logger import Video as SB3Video

        film = SB3Video(torch.from_numpy(_read(media.path)), media.fps or clip.fps)
        output.write({key: film}, {key: ("stdout", "log", "json", "csv")}, step)


def _write_gif(output: Any, key: str, video: Video, step: int) -> None:
    """TensorBoard's image tab plays GIFs. SB3's own way needs MoviePy below 2, and holds all frames in memory."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    from mimickit.loggers.tensorboard_logger import image_size, video_to_gif

    data = video_to_gif(video.path, video.fps)
    width, height = image_size(data)
    image = Summary.Image(width=width, height=height, colorspace=3, encoded_image_string=data)
    output.writer.file_writer.add_summary(Summary(value=[Summary.Value(tag=key, image=image)]), step)
    output.writer.flush()


def _read(path: Path) -> NDArray[np.uint8]:
    """All frames (1, T, 3, height, width) uint8 RGB."""
    import cv2

    capture, frames = cv2.VideoCapture(str(path)), []
    while True:
        good, frame = capture.read()
        if not good:
            break
        frames.append(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB).transpose(2, 0, 1))
    capture.release()
    return np.stack(frames)[None]
