"""What follows when a recording's files are complete: side files, and the page on which it can be turned around."""

from collections.abc import Sequence
from pathlib import Path

from mimickit.video.clip import Clip, Episode
from mimickit.video.errors import VideoError
from mimickit.video.files.names import beside
from mimickit.video.production import FilmPlan, FinishedClip, Wrap

_OWN = ("name", "engine", "seed", "model_file", "samples")  # facts with a place of their own in a side file


def finish_clips(plan: FilmPlan, wrap: Wrap, episodes: Sequence[Episode], notes: Sequence[str]) -> list[Clip]:
    """The clips of a recording, with their side files written.

    Args:
        wrap: what was completed; an error in writing what belongs to the clips is put into it. episodes: by states, as
            a Tape has them. notes: what is not as it was asked for.
    """
    replay = _write_replay(plan, wrap) if plan.config.replay else None
    clips = [_make_clip(plan, wrap, finished, episodes, notes, replay) for finished in wrap.clips]
    for clip in clips:
        try:
            clip.write_side_file()
        except OSError as error:
            wrap.error = VideoError(f"{clip.side_file}: can't be written: {error.strerror or error}")
    return clips


def _make_clip(
    plan: FilmPlan,
    wrap: Wrap,
    finished: FinishedClip,
    episodes: Sequence[Episode],
    notes: Sequence[str],
    replay: Path | None,
) -> Clip:
    facts, casts = dict(plan.header.facts), plan.header.casts
    own = {name: facts.pop(name, None) for name in _OWN}
    shown = sorted({subject for tile in finished.plan.layout.tiles for subject in tile.subjects})
    env_ids = tuple(casts[index].env_id for index in shown)
    in_clip = [episode.in_frames(plan.clock) for episode in episodes if episode.env_id in env_ids]
    return Clip(
        path=finished.path,
        side_file=beside(finished.path, ".json"),
        fps=finished.fps,
        num_frames=finished.num_frames,
        width=plan.width,
        height=plan.height,
        engine=str(own["engine"] or plan.header.engine),
        env_id=env_ids[0],
        env_ids=env_ids,
        camera=",".join(dict.fromkeys(tile.camera for tile in finished.plan.layout.tiles)),
        trace=wrap.trace,
        poster=finished.poster,
        replay=replay,
        episodes=tuple(episode for episode in in_clip if episode.num_frames),
        seed=own["seed"],
        model_file=None if own["model_file"] is None else str(own["model_file"]),
        samples=own["samples"],
        notes=(*notes, *wrap.notes),
        context=facts,
    )


def _write_replay(plan: FilmPlan, wrap: Wrap) -> Path | None:
    """The 3-D page of the trace; None, with the cause in the wrap, where it can't be made."""
    if wrap.trace is None:
        wrap.notes.append("replay: there is no trace to make it from")
        return None
    from mimickit.video.pages.replay import write_replay

    try:
        return write_replay([wrap.trace], beside(wrap.trace, ".html"))
    except (OSError, ValueError, VideoError) as error:
        wrap.error = error
        return None
