"""The replay page: recordings in three dimensions, in one HTML file that needs neither network nor server."""

import base64
import contextlib
import html
import json
import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimickit.video.errors import VideoError
from mimickit.video.pages.replay_geometry import Color, MeshStore, figure_of, look, run_colors
from mimickit.video.pages.replay_states import POS_STEPS, ROT_STEPS, StateEncoder
from mimickit.video.pages.web_page import filled, web_text, write_whole
from mimickit.video.traces.trace import EnvCast, Trace, TraceError

SUFFIX = ".html"
MAX_BYTES = 100_000_000
"""About how big a page may become; browsers have trouble with more."""
_BASE64 = 4 / 3  # characters a byte


def write_replay(
    traces: Sequence[Trace | Path],
    path: Path,
    *,
    labels: Sequence[str] | None = None,
    title: str | None = None,
    max_bytes: int = MAX_BYTES,
) -> Path:
    """Write a page on which traces can be played, turned and compared; returns path, which it replaces.

    Every environment of every trace is a run of its own on the page. labels, one a trace, tell the runs apart; default:
    the traces' names. Of traces that would make the page bigger than max_bytes only every nth state is kept, which the
    page says. Raises VideoError (TraceError for what can't be read) and leaves what was at path alone then.
    """
    if not traces:
        raise VideoError(f"{path}: a replay needs at least one trace, found none")
    if labels is not None and len(labels) != len(traces):
        raise VideoError(f"{path}: expected {len(traces)} labels, one a trace, found {len(labels)}")
    with contextlib.ExitStack() as opened:
        films = [t if isinstance(t, Trace) else opened.enter_context(Trace(t)) for t in traces]
        names = list(labels) if labels is not None else [_name(film) for film in films]
        stride = math.ceil(sum(film.states_size for film in films) * _BASE64 / max_bytes)
        colors = iter(run_colors(sum(len(film.casts) for film in films)))
        meshes = MeshStore()
        runs: list[_Run] = []
        for film, name in zip(films, names, strict=True):
            runs += _runs(film, name, stride, colors, meshes)
    heading = title if title is not None else " · ".join(names)
    write_whole(path, _page(heading, runs, meshes))
    return path


@dataclass(frozen=True)
class _Run:
    """One environment of one trace."""

    head: dict[str, Any]
    states: bytes  # deflated


def _runs(film: Trace, name: str, stride: int, colors: Iterable[Color | None], meshes: MeshStore) -> list[_Run]:
    if film.num_states == 0:
        raise TraceError(f"{film.path}: expected a trace with at least one state, found none")
    encoders = [StateEncoder(sum(cast.body_counts)) for cast in film.casts]
    for index, moment in enumerate(film.states()):
        for encoder, snapshot in zip(encoders, moment, strict=True):
            if index % stride:
                encoder.skip(snapshot)
            else:
                encoder.add(snapshot)
    runs = []
    for cast, encoder, color in zip(film.casts, encoders, colors, strict=False):
        label = name if len(film.casts) == 1 else f"{name} env {cast.env_id}"
        states = encoder.finish()
        head = {
            "label": label,
            "about": _about(film),
            "color": _css(color),
            "figure": figure_of(cast, encoder.max_ghosts, color, meshes),
            "dt": film.dt * stride,
            "num_states": encoder.num_states,
            "cuts": encoder.cuts,
            "ghosts": encoder.ghosts,
            "facts": encoder.facts(),
            "episodes": _episodes(film, cast, stride),
            "notes": _notes(film, stride),
        }
        runs.append(_Run(head, states))
    return runs


def _episodes(film: Trace, cast: EnvCast, stride: int) -> list[dict[str, Any]]:
    """First state and outcome of the environment's episodes, where the trace knows them."""
    found = []
    for episode in film.ending.get("episodes", []):
        if isinstance(episode, Mapping) and episode.get("env_id", cast.env_id) == cast.env_id:
            first = math.ceil(int(episode.get("first_frame", 0)) / stride)
            found.append({"first": first, "outcome": str(episode.get("outcome", ""))})
    return found


def _notes(film: Trace, stride: int) -> list[str]:
    notes = []
    if stride > 1:
        notes.append(
            f"One state in {stride} of {film.path.name} is kept: all {film.num_states} are more than a page can hold."
        )
    if not film.is_complete:
        notes.append(f"{film.path.name} was cut short: its recording was not finished.")
    return notes


def _about(film: Trace) -> str:
    samples = film.facts.get("samples")
    return film.engine if samples is None else f"{film.engine}, {samples:,} samples"


def _css(color: Color | None) -> str:
    """A colour as style sheets write it."""
    parts = (round(255 * part) for part in color or (0.94, 0.58, 0.25))
    return f"rgb({', '.join(str(part) for part in parts)})"


def _name(film: Trace) -> str:
    return film.path.name.removesuffix(".part").removesuffix(".trace")


# ---------------------------------------------------------------------- the page


def _page(title: str, runs: Sequence[_Run], meshes: MeshStore) -> Iterable[str]:
    """The page in pieces."""
    content = {
        "pos_steps": POS_STEPS,
        "rot_steps": ROT_STEPS,
        "look": look(),
        "meshes": meshes.entries,
        "runs": [run.head for run in runs],
    }
    data = [zlib.compress(meshes.content(), 9), *(run.states for run in runs)]
    text = json.dumps(content, separators=(",", ":"), allow_nan=False, default=str)
    pieces = {
        "TITLE": [html.escape(title)],
        "STYLE": [web_text("replay.css")],
        "CONTENT": [text.replace("<", "\\u003c")],  # or a label could end the script element that holds it
        "DATA": (_data_element(index, part) for index, part in enumerate(data)),
        "CODE": [web_text("replay.bundle.js")],
    }
    return filled("replay.html", pieces)


def _data_element(index: int, data: bytes) -> str:
    return f'<script type="text/plain" id="data-{index}">{base64.b64encode(data).decode("ascii")}</script>\n'
