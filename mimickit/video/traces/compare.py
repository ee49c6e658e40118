"""One film of several runs side by side, in step: from their traces, or where there are none from their clips."""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.video.clip import Clip
from mimickit.video.config import EnvLayout, VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.frame_clock import between
from mimickit.video.layout import Tile
from mimickit.video.production import ClipPlan, FilmPlan
from mimickit.video.snapshot import Moment, Snapshot
from mimickit.video.traces.refilm import Footage, film, trace_episodes
from mimickit.video.traces.trace import EnvCast, Trace, TraceHeader, is_trace

_CLIPS = (".mp4", ".webm", ".gif", ".mkv", ".mov")
_SAME = 1e-6  # of a state


@dataclass(frozen=True)
class Contender:
    """One of the runs that are compared."""

    name: str
    trace: Path | None
    clip: Path | None
    mean_return: float | None = None
    is_clip: bool = False
    """The clip itself was named, or shows an episode of its own: compared as it was filmed, where that can be."""

    @property
    def label(self) -> str:
        """Name and return."""
        return self.name if self.mean_return is None else f"{self.name}  return {self.mean_return:.1f}"


def find_contender(path: Path, name: str | None = None) -> Contender:
    """A run from its folder (the newest clip in it), a trace or a clip. Raises VideoError naming path."""
    if path.is_dir():
        return _of_run(path, name or path.resolve().name)
    if not path.is_file():
        raise VideoError(f"{path}: expected a trace, a clip or a run folder, found nothing there")
    if is_trace(path):
        return Contender(name or path.name.partition(".")[0], path, None)
    if path.suffix.lower() not in _CLIPS:
        raise VideoError(f"{path}: expected a trace, a clip ({', '.join(_CLIPS)}) or a run folder")
    side = path.with_suffix(".json")
    if not side.is_file():
        return Contender(name or path.stem, None, path, is_clip=True)
    return _of_clip(Clip.load(side), name or path.stem, is_clip=True)


def _of_run(path: Path, name: str) -> Contender:
    """The newest clip of a run, of a test's picked episodes the best; of a run that left none, its newest trace."""
    clips = [Clip.load(side) for side in sorted((path / "videos").glob("*.json"), key=lambda p: p.stat().st_mtime)]
    if clips:
        last = clips[-1]
        if "pick" not in last.context:
            return _of_clip(last, name, is_clip=False)
        picks = [clip for clip in clips if clip.samples == last.samples and clip.context.get("pick") == "best"]
        return _of_clip(picks[-1] if picks else last, name, is_clip=True)
    traces = sorted((p for p in (path / "videos").glob("*") if is_trace(p)), key=lambda p: p.stat().st_mtime)
    if not traces:
        raise VideoError(f"{path}: expected a run folder with clips in {path / 'videos'}, found none")
    return Contender(name, traces[-1], None)


def _of_clip(clip: Clip, name: str, *, is_clip: bool) -> Contender:
    has_own_trace = clip.trace is not None and clip.trace.is_file() and "pick" not in clip.context
    return Contender(name, clip.trace if has_own_trace else None, clip.path, clip.mean_return, is_clip=is_clip)


def compare(contenders: Sequence[Contender], config: VideoConfig, path: Path) -> list[Clip]:
    """Film the runs into path. All start together; one that ends before the others stands still, and its label says so.

    Clips that were named are shown as they were filmed, unless another camera, views or one scene are asked for: those
    are made from the traces beside them. Of a trace the first environment is compared.

    Args:
        config: env_layout tiles (side by side), scene (on one ground) or overlaid (in one place).

    Raises VideoError, ConfigError.
    """
    config = replace(config, envs=(), env=0, pick=())
    wants_scene = config.env_layout in (EnvLayout.SCENE, EnvLayout.OVERLAID)
    is_filmed = wants_scene or bool(config.views) or config.camera != VideoConfig.camera
    have_traces = all(contender.trace is not None for contender in contenders)
    if have_traces and (is_filmed or not all(contender.is_clip for contender in contenders)):
        with ExitStack() as stack:
            traces = [stack.enter_context(Trace(c.trace)) for c in contenders if c.trace is not None]
            return film(together(traces, contenders), config, path)
    lacking = [contender.name for contender in contenders if contender.trace is None]
    if is_filmed:
        raise VideoError(f"runs: {', '.join(lacking)}: a camera, views or one scene need traces, and there is none")
    unfilmed = [contender.name for contender in contenders if contender.clip is None or contender.clip.is_dir()]
    if unfilmed:
        raise VideoError(
            f"runs: {', '.join(unfilmed)}: a trace alone, or a folder of frames, can't be compared with clips that "
            f"have no trace ({', '.join(lacking)}): film it first (--mode film)"
        )
    with ExitStack() as stack:
        reels = [stack.enter_context(_ClipReel(c.clip)) for c in contenders if c.clip is not None]
        return film(_of_clips(reels, contenders), config, path, _ClipFilmer(reels))


# ---------------------------------------------------------------------- traces


def together(traces: Sequence[Trace], contenders: Sequence[Contender]) -> Footage:
    """The first environments of several traces as environments of one recording, at the finest of their rates."""
    dt = min(trace.dt for trace in traces)
    count = max(math.ceil((len(trace) - 1) * trace.dt / dt - _SAME) + 1 for trace in traces)
    casts = tuple(EnvCast(i, t.casts[0].actors, t.casts[0].body_counts) for i, t in enumerate(traces))
    labels = [contender.label for contender in contenders]
    facts = {"name": "comparison", "runs": labels, "key_bodies": traces[0].facts.get("key_bodies")}
    header = TraceHeader(dt, traces[0].engine, casts, facts)
    episodes = [
        replace(
            episode, env_id=index, first_frame=round(episode.first_frame * trace.dt / dt),
            num_frames=round(episode.num_frames * trace.dt / dt),
        )
        for index, trace in enumerate(traces)
        for episode in trace_episodes(trace)
        if episode.env_id == trace.casts[0].env_id
    ]  # fmt: skip
    return Footage(header, count, _in_step(traces, contenders, dt, count), episodes, labels=labels)


def _in_step(
    traces: Sequence[Trace], contenders: Sequence[Contender], dt: float, count: int
) -> Iterator[Moment]:
    # of each run its own, which a film of one run has from its header
    facts = [{"run": c.name, "samples": t.facts.get("samples")} for t, c in zip(traces, contenders, strict=True)]
    for index in range(count):
        states = [_state_at(trace, index * dt) for trace in traces]
        yield tuple(
            replace(s, time=index * dt, step=index, env_id=number, annotations={**s.annotations, **facts[number]})
            for number, s in enumerate(states)
        )


def _state_at(trace: Trace, time: float) -> Snapshot:
    place = time / trace.dt
    last = len(trace) - 1
    if place >= last - _SAME:
        snapshot = trace.state(last)[0]
        if place < last + _SAME:
            return snapshot
        ended = {**snapshot.annotations, "ended": True}
        return replace(snapshot, annotations=ended, is_cut=False)
    index = int(place + _SAME)
    share = place - index
    first = trace.state(index)[0]
    if share < _SAME:
        return first
    return replace(between(first, trace.state(index + 1)[0], share), is_cut=False)


# ---------------------------------------------------------------------- clips


class _ClipReel:
    """A clip's frames, one after the other."""

    def __init__(self, path: Path) -> None:
        import cv2

        self.path = path
        self._capture = cv2.VideoCapture(str(path))
        self.fps = float(self._capture.get(cv2.CAP_PROP_FPS))
        self.count = int(self._capture.get(cv2.CAP_PROP_FRAME_COUNT))
        self.index = -1
        self.frame: NDArray[np.uint8] | None = None
        if not self._capture.isOpened() or self.fps <= 0.0 or self.count < 1:
            raise VideoError(f"{path}: not a clip that can be read")

    def __enter__(self) -> "_ClipReel":
        return self

    def __exit__(self, *_: object) -> None:
        self._capture.release()

    def wind(self, index: int) -> bool:
        """Go on to a frame; False where the clip has ended, and its last frame stays."""
        import cv2

        while self.index < index:
            good, frame = self._capture.read()
            if not good:
                if self.frame is None:
                    raise VideoError(f"{self.path}: no frame of it can be read")
                return False
            self.frame = np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), dtype=np.uint8)
            self.index += 1
        return True


def _of_clips(reels: Sequence[_ClipReel], contenders: Sequence[Contender]) -> Footage:
    """Moments without bodies, in which only time passes."""
    fps = max(reel.fps for reel in reels)
    count = max(math.ceil((reel.count - 1) / reel.fps * fps - _SAME) + 1 for reel in reels)
    casts = tuple(EnvCast(index, (), ()) for index in range(len(reels)))
    labels = [contender.label for contender in contenders]
    header = TraceHeader(1.0 / fps, "clips", casts, {"name": "comparison", "runs": labels})
    return Footage(header, count, _ticks(reels, fps, count), labels=labels)


def _ticks(reels: Sequence[_ClipReel], fps: float, count: int) -> Iterator[Moment]:
    for index in range(count):
        time, snapshots = index / fps, []
        for number, reel in enumerate(reels):
            facts: dict[str, Any] = {"episode_time": time}
            if not reel.wind(int(time * reel.fps + 1e-3)):
                facts["ended"] = True
            snapshots.append(Snapshot(time=time, env_id=number, step=index, poses=[], annotations=facts))
        yield tuple(snapshots)


class _ClipFilmer:
    """A Filmer that puts the clips' frames into the tiles, whole and in their own proportions."""

    def __init__(self, reels: Sequence[_ClipReel]) -> None:
        self._reels = reels

    def begin(self, plan: FilmPlan) -> None:
        self._frame = np.zeros((plan.height, plan.width, 3), dtype=np.uint8)

    def shoot(self, clip: ClipPlan, moment: Moment) -> NDArray[np.uint8]:
        self._frame[:] = 0
        for tile in clip.layout.tiles:
            self._fill(tile, self._reels[tile.subjects[0]])
        return self._frame

    def _fill(self, tile: Tile, reel: _ClipReel) -> None:
        import cv2

        assert reel.frame is not None
        height, width = reel.frame.shape[:2]
        scale = min(tile.rect.width / width, tile.rect.height / height)
        size = max(1, round(width * scale)), max(1, round(height * scale))
        left = tile.rect.left + (tile.rect.width - size[0]) // 2
        top = tile.rect.top + (tile.rect.height - size[1]) // 2
        way = cv2.INTER_AREA if scale < 1.0 else cv2.INTER_LINEAR
        self._frame[top : top + size[1], left : left + size[0]] = cv2.resize(reel.frame, size, interpolation=way)

    def close(self) -> None:
        return
