"""Films a trace again: with another camera, size, speed or overlay, without the engine that made it."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mimickit.util.keys import ConfigError
from mimickit.video.camera.camera_rig import make_camera
from mimickit.video.clip import Clip, Episode
from mimickit.video.config import Pick, VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.files.names import beside, suffix_of
from mimickit.video.plan import make_plan
from mimickit.video.production import Filmer, Production
from mimickit.video.snapshot import Moment
from mimickit.video.stage.stage_filmer import StageFilmer
from mimickit.video.traces.trace import Trace, TraceHeader
from mimickit.video.wrap_up import finish_clips

_log = logging.getLogger("mimickit.video")


@dataclass(frozen=True)
class Footage:
    """States that can be filmed, wherever they come from."""

    header: TraceHeader
    num_states: int
    states: Iterator[Moment]
    episodes: Sequence[Episode] = ()
    notes: Sequence[str] = ()
    labels: Sequence[str] | None = None
    """Of the environments, where several share a film; default: their numbers."""


def trace_footage(
    trace: Trace, env_ids: Sequence[int] = (), *, first: int = 0, stop: int | None = None, **facts: Any
) -> Footage:
    """What a trace shows.

    Args:
        env_ids: of which environments; default: all that it holds. first, stop: states from first up to stop.
        facts: in place of the trace's own.

    Raises ConfigError for an environment that it doesn't hold.
    """
    stop = trace.num_states if stop is None else min(stop, trace.num_states)
    held = [cast.env_id for cast in trace.casts]
    for env in env_ids:
        if env not in held:
            raise ConfigError(f"{trace.path}: env: expected one of {', '.join(map(str, held))}, found {env}")
    chosen = [held.index(env) for env in env_ids] if env_ids else list(range(len(held)))
    ids = {held[index] for index in chosen}
    header = TraceHeader(trace.dt, trace.engine, tuple(trace.casts[i] for i in chosen), {**trace.facts, **facts})
    episodes = [_within(episode, first, stop) for episode in trace_episodes(trace) if episode.env_id in ids]
    notes = [] if trace.is_complete else [f"trace: {trace.path.name} has no end; {trace.num_states} states were saved"]
    states = _rebased(trace, chosen, first, stop)
    return Footage(header, max(stop - first, 0), states, [e for e in episodes if e.num_frames > 0], notes)


def trace_episodes(trace: Trace) -> list[Episode]:
    """The episodes in a trace; first_frame and num_frames count states."""
    return [Episode(**episode) for episode in trace.ending.get("episodes", [])]


def film(footage: Footage, config: VideoConfig, path: Path, filmer: Filmer | None = None) -> list[Clip]:
    """Film states into path, or files beside it where the configuration makes several clips. No new trace is kept.

    Args:
        filmer: turns moments into pictures; default: the Stage.

    Raises VideoError when filming fails, ConfigError for a camera that isn't there.
    """
    if footage.num_states == 0:
        raise VideoError(f"{path}: there is nothing to film: the trace holds no state")
    for camera in config.cameras:
        make_camera(camera, config=config)
    own = filmer is None
    filmer = StageFilmer() if filmer is None else filmer
    notes = list(footage.notes)
    alone = replace(config, trace=False, replay=False, defer=False)
    plan = make_plan(alone, footage.header, path, notes, labels=footage.labels)
    limit = None if config.max_seconds is None else config.max_seconds * plan.clock.fps + 1e-6
    try:
        production = Production(plan, filmer)
        try:
            for count, moment in enumerate(footage.states):
                if limit is not None and plan.clock.count(count + 1) > limit:
                    break
                production.feed(moment)
            wrap = production.wrap({})
        except BaseException as error:
            production.give_up()
            if isinstance(error, (VideoError, ValueError)) or not isinstance(error, Exception):
                raise
            raise VideoError(f"{path}: {type(error).__name__}: {error}") from error  # in a camera of one's own
    finally:
        if own:
            filmer.close()
    if wrap.error is not None:
        raise wrap.error
    for note in dict.fromkeys((*notes, *wrap.notes)):
        _log.info("%s", note)
    return finish_clips(plan, wrap, footage.episodes, notes)


def picked_episodes(episodes: Sequence[Episode], picks: Sequence[Pick]) -> Mapping[str, Episode]:
    """The episodes with the highest, lowest and middle return of those that ended, by the name of the pick; for
    Pick.MOTION the middle one of each motion, by the motion's name without its suffix.
    """
    ended = [episode for episode in episodes if episode.episode_return is not None and episode.num_frames]
    ranked = sorted(ended, key=lambda episode: episode.episode_return or 0.0)
    if not ranked:
        return {}
    places = {Pick.BEST: -1, Pick.WORST: 0, Pick.MEDIAN: (len(ranked) - 1) // 2}
    picked = {pick.value: ranked[places[pick]] for pick in picks if pick in places}
    if Pick.MOTION in picks:
        of: dict[str, list[Episode]] = {}
        for episode in ranked:
            of.setdefault(Path(str(episode.info.get("motion", Pick.MOTION.value))).stem, []).append(episode)
        picked |= {motion: of[motion][(len(of[motion]) - 1) // 2] for motion in sorted(of)}
    return picked


def _within(episode: Episode, first: int, stop: int) -> Episode:
    begin, end = max(episode.first_frame, first), min(episode.first_frame + episode.num_frames, stop)
    return replace(episode, first_frame=begin - first, num_frames=end - begin)


def _rebased(trace: Trace, chosen: Sequence[int], first: int, stop: int) -> Iterator[Moment]:
    """The states of some environments, counted from first."""
    for index in range(first, stop):
        moment = trace.state(index)
        yield tuple(
            replace(
                moment[i], time=(index - first) * trace.dt, step=index - first,
                is_cut=moment[i].is_cut or index == first,
            )
            for i in chosen
        )  # fmt: skip


def film_recorded(trace_file: Path, config: VideoConfig, path: Path) -> list[Clip]:
    """Film a recording of which only the trace was kept: into path, or of its picked episodes into files beside it.

    Raises as film().
    """
    with Trace(trace_file) as trace:
        clips = film_picks(trace, config, path) if config.pick else film(trace_footage(trace), config, path)
    return _kept_with(clips, trace_file)


def film_picks(trace: Trace, config: VideoConfig, path: Path) -> list[Clip]:
    """Film the picked episodes of a trace into files beside path. Raises as film()."""
    single, clips = replace(config, envs=(), pick=()), list[Clip]()
    episodes = [episode for episode in trace_episodes(trace) if not config.envs or episode.env_id in config.envs]
    picked = picked_episodes(episodes, config.pick)
    if not picked:
        _log.info("pick: no episode ended, so that there is none to choose from")
    for name, episode in picked.items():
        footage = trace_footage(
            trace, (episode.env_id,), first=episode.first_frame, stop=episode.first_frame + episode.num_frames,
            pick=name,
        )  # fmt: skip
        clips += film(footage, single, beside(path, f"_{name}{suffix_of(config.format)}"))
    return clips


def _kept_with(clips: list[Clip], trace_file: Path) -> list[Clip]:
    """The clips, their side files naming the trace and the replay page beside them."""
    page = beside(trace_file, ".html")
    kept = [replace(clip, trace=trace_file, replay=page if page.is_file() else None) for clip in clips]
    for clip in kept:
        clip.write_side_file()
    return kept
