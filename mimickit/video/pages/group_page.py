"""A page on which runs stand side by side: films in step, pictures, curves and figures, from their folders alone."""

import html
import json
import math
import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mimickit.video.pages.curves import Curve, chart, short
from mimickit.video.pages.run_record import Exhibit, RunRecord
from mimickit.video.pages.web_page import filled, write_whole
from mimickit.video.palette import SUBJECT_COLORS, subject_color

TEMPLATE = "group.html"
_SHOWN = ("video", "image")  # kinds that stand in the page itself
_PLAYED = (".mp4", ".webm", ".mov", ".ogg")  # by a video element; a gif is a picture
_FIRST = ("test_video", "test/", "train/")  # beginnings of names
_FIGURES_FIRST = ("mean_return", "normalised_return", "mean_ep_len", "falls", "num_eps")
_NO_CURVES = ("iteration", "wall_time_s", "train_time_s")
_NO_SETTINGS = ("command", "flags")  # of a configuration: they say the same in other words


def write_group_page(runs: Sequence[RunRecord], page: Path, title: str) -> Path:
    """Write a page (HTML) that shows runs, one or several, side by side; returns its path, which is replaced.

    It refers to the runs' files where they are, relative to itself, and needs nothing else: no server, no network.
    Raises VideoError where it can't be written.
    """
    place = page.resolve().parent
    films = [_film_section(key, runs, place) for key in _ordered(_shown_keys(runs))]
    pieces = {
        "TITLE": [html.escape(title)],
        "COUNT": [f"{len(runs)} run{'' if len(runs) == 1 else 's'}"],
        "LEGEND": [_legend(run, _css(index), place) for index, run in enumerate(runs)],
        "FILMS": films or ["<p>No film, no picture.</p>"],
        "CURVES": _curve_sections(runs),
        "FIGURES": [_figures(runs)],
        "SETTINGS": [_settings(runs)],
        "FILES": [_files(runs, place)],
        "DATA": [_data(runs, place)],
    }
    write_whole(page, filled(TEMPLATE, pieces))
    return page


def _css(index: int) -> str:
    if index >= len(SUBJECT_COLORS):  # as far from the others as hues can be
        return f"hsl({137.5 * index % 360.0:.0f} 55% 48%)"
    return "#" + "".join(f"{round(255 * part):02x}" for part in subject_color(index))


def _address(path: Path, place: Path) -> str:
    """A link from the page to a file."""
    try:
        return quote(Path(os.path.relpath(path.resolve(), place)).as_posix())
    except ValueError:  # another drive
        return path.resolve().as_uri()


def _ordered(keys: Iterable[str]) -> list[str]:
    """Names in the order of what matters most."""

    def rank(key: str) -> tuple[int, int, str]:
        start = next((number for number, start in enumerate(_FIRST) if key.startswith(start)), len(_FIRST))
        leaf = key.rpartition("/")[2]
        return start, _FIGURES_FIRST.index(leaf) if leaf in _FIGURES_FIRST else len(_FIGURES_FIRST), key

    return sorted(set(keys), key=rank)


# ---------------------------------------------------------------------- films and pictures


def _shown_keys(runs: Sequence[RunRecord]) -> set[str]:
    return {item.key for run in runs for item in run.exhibits if item.kind in _SHOWN}


def _film_section(key: str, runs: Sequence[RunRecord], place: Path) -> str:
    name = html.escape(key)
    is_first = key == _ordered(_shown_keys(runs))[0]
    cards = []
    for number, run in enumerate(runs):
        items = [item for item in run.exhibits if item.key == key and item.kind in _SHOWN]
        body = _show(items[-1], place) if items else '<div class="media missing">none</div>'
        caption = f"<figcaption><b>{html.escape(run.name)}</b> <span></span></figcaption>"
        cards.append(
            f'<figure data-run="{number}" data-key="{name}" style="--run: {_css(number)}">'
            f'<div class="frame">{body}</div>{caption}</figure>'
        )
    return _details(name, f'<div class="side-by-side">{"".join(cards)}</div>', is_open=is_first)


def _show(item: Exhibit, place: Path) -> str:
    address, label = _address(item.path, place), html.escape(item.caption or item.path.name)
    if item.path.suffix.lower() in _PLAYED:
        return f'<video class="media" src="{address}" preload="auto" muted playsinline aria-label="{label}"></video>'
    return f'<img class="media" src="{address}" loading="lazy" alt="{label}">'


def _data(runs: Sequence[RunRecord], place: Path) -> str:
    """What the page needs to show another moment: by run and name, samples and address of everything."""
    shown: list[dict[str, list[dict[str, Any]]]] = []
    for run in runs:
        of: dict[str, list[dict[str, Any]]] = {}
        for item in run.exhibits:
            if item.kind in _SHOWN:
                entry = {"samples": item.samples, "html": _show(item, place), "caption": item.caption}
                of.setdefault(item.key, []).append(entry)
        shown.append({key: sorted(items, key=lambda entry: entry["samples"]) for key, items in of.items()})
    return json.dumps(shown).replace("<", "\\u003c")  # no end of the script in it


def _legend(run: RunRecord, color: str, place: Path) -> str:
    name = html.escape(run.name)
    page = next((path for path in (run.folder / "index.html", run.folder / "videos" / "index.html")
                 if path.is_file() and path.resolve().parent != place), None)  # fmt: skip
    link = f'<a href="{_address(page, place)}">{name}</a>' if page else name
    return f'<li style="--run: {color}">{link}</li>'


# ---------------------------------------------------------------------- numbers


def _curve_sections(runs: Sequence[RunRecord]) -> Iterator[str]:
    """Charts in groups: what a slash separates, the tests' first."""
    groups: dict[str, list[str]] = {}
    for key in _ordered(key for run in runs for key in run.curves if key not in _NO_CURVES):
        groups.setdefault(key.rpartition("/")[0], []).append(key)
    for group, keys in groups.items():
        charts = "".join(_chart(key, runs) for key in keys)
        is_open = group in ("test", "train") or "test" not in groups
        name = html.escape(group or "others")
        yield _details(name, f'<div class="charts">{charts}</div>', is_open=is_open)


def _chart(key: str, runs: Sequence[RunRecord]) -> str:
    curves = [
        Curve(run.name, _css(index), *run.curves[key]) for index, run in enumerate(runs) if key in run.curves
    ]
    return f"<figure><figcaption>{html.escape(key)}</figcaption>{chart(curves, f'{key} over samples')}</figure>"


def _figures(runs: Sequence[RunRecord]) -> str:
    """The results as a table; of several runs with mean and standard deviation."""
    keys = _ordered(key for run in runs for key in run.figures)
    rows = []
    for key in keys:
        values = [run.figures.get(key, math.nan) for run in runs]
        cells = ["–" if math.isnan(value) else short(value) for value in values]
        known = [value for value in values if not math.isnan(value)]
        if len(runs) > 1:
            spread = f" ± {short(statistics.stdev(known))}" if len(known) > 1 else ""
            cells.append(f"{short(statistics.fmean(known))}{spread}")
        rows.append((key, cells))
    return _table([*(run.name for run in runs), *(["mean ± std"] if len(runs) > 1 else [])], rows)


def _settings(runs: Sequence[RunRecord]) -> str:
    """In which settings the runs differ."""
    flat = [_flattened({key: run.config[key] for key in run.config if key not in _NO_SETTINGS}) for run in runs]
    keys = sorted({key for settings in flat for key in settings})
    rows = [(key, [settings.get(key, "–") for settings in flat]) for key in keys]
    different = [(key, cells) for key, cells in rows if len(set(cells)) > 1 or len(runs) == 1]
    return _table([run.name for run in runs], different) if different else "<p>The runs have the same settings.</p>"


def _flattened(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = str(value)
    return flat


def _table(heads: Sequence[str], rows: Sequence[tuple[str, Sequence[str]]]) -> str:
    top = "".join(f"<th>{html.escape(head)}</th>" for head in ("", *heads))
    body = "".join(
        f"<tr><th>{html.escape(name)}</th>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        for name, cells in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>\n"


def _files(runs: Sequence[RunRecord], place: Path) -> str:
    """Everything else that was delivered, as links."""
    lists = []
    for run in runs:
        items = [item for item in run.exhibits if item.kind not in _SHOWN]
        links = "".join(
            f'<li>{html.escape(item.key)} at {item.samples:,}: <a href="{_address(item.path, place)}">'
            f"{html.escape(item.path.name)}</a></li>"
            for item in items
        )
        if links:
            lists.append(_details(f"{html.escape(run.name)}: {len(items)} files", f"<ul>{links}</ul>"))
    return "".join(lists)


def _details(summary: str, body: str, *, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{summary}</summary>{body}</details>\n"
