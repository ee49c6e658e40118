"""From a configuration to the plan of a recording: names of the files, size and rate of the frames."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mimickit.util.keys import ConfigError
from mimickit.video.config import VideoConfig, VideoFormat
from mimickit.video.files.encoders import limit_fps
from mimickit.video.files.names import TRACE_SUFFIX, beside, format_of, reserve_name, suffix_of
from mimickit.video.frame_clock import FrameClock
from mimickit.video.layout import plan_layouts
from mimickit.video.production import ClipPlan, FilmPlan
from mimickit.video.traces.trace import TraceHeader

_RATE_TOLERANCE = 1e-6


def make_plan(
    config: VideoConfig,
    header: TraceHeader,
    path: Path,
    notes: list[str],
    *,
    films: bool = True,
    labels: Sequence[str] | None = None,
) -> FilmPlan:
    """Reserve the names of a recording's files, path's own for a single clip, and decide how it is filmed.

    Args:
        header: who is on stage. path: of the clip. notes: gets what is not as it was asked for. films: False for a
            trace alone. labels: of the environments, where several share a film.

    Raises VideoError where nothing can be written.
    """
    layouts = plan_layouts(config, [cast.env_id for cast in header.casts], labels) if films else []
    names = [beside(path, layout.suffix + suffix_of(config.format)) for layout in layouts]
    clips = [ClipPlan(reserve_name(name), layout) for name, layout in zip(names, layouts, strict=True)]
    trace = None
    if config.trace or not films:
        trace = reserve_name(beside(clips[0].path if len(clips) == 1 else path, TRACE_SUFFIX))
    clock = FrameClock(header.dt, _limited(_choose_fps(config, header.dt, notes), config, notes), config.speed)
    width, height = config.even_size
    if (config.width, config.height) != (width, height):
        asked = f"{config.width}x{config.height}"
        notes.append(f"size: {asked} asked for, {width}x{height} filmed: players of H.264 need even numbers")
    return FilmPlan(config, header, clock, width, height, clips, trace)


def clip_path(path: str | Path | None, config: VideoConfig, context: Mapping[str, Any]) -> Path:
    """The file that a recording is asked to make: path itself, or a name in the folder path. Raises ConfigError."""
    suffix = suffix_of(config.format)
    name = re.sub(r"[^\w.+-]+", "_", str(context.get("name") or "film"))
    samples = context.get("samples")
    own = f"{name}{suffix}" if samples is None else f"{name}_{int(samples):012d}{suffix}"
    if path is None:
        return (config.out_dir or Path("videos")) / own
    given = Path(path)
    if suffix and given.suffix.lower() == suffix and not given.is_dir():
        return given
    if given.suffix and not given.is_dir():
        expected = f"a folder or a {suffix} file" if suffix else "a folder"
        hint = f"; format {given.suffix[1:]} makes those" if format_of(given) is not VideoFormat.PNG else ""
        raise ConfigError(f"video recording: path: expected {expected}, found {path}{hint}")
    return given / own


def _choose_fps(config: VideoConfig, dt: float, notes: list[str]) -> float:
    rate, fps = 1.0 / dt, config.fps
    if fps is None:
        return rate
    most = rate / min(config.speed, 1.0)
    if fps > most + _RATE_TOLERANCE:
        notes.append(f"fps: {fps:g} asked for, {most:g} filmed: there is one state a control step")
    return min(fps, most)


def _limited(fps: float, config: VideoConfig, notes: list[str]) -> float:
    """The rate that the format can hold."""
    limited = limit_fps(fps, config.format)
    if limited < fps - _RATE_TOLERANCE:
        notes.append(f"fps: {limited:g} filmed: a {config.format.value} can't hold {fps:g}")
    return limited
