"""The index page of a run: all of its clips with their figures, playing where they lie."""

import html
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from mimickit.video.clip import UNFINISHED, Clip, Episode
from mimickit.video.errors import VideoError
from mimickit.video.pages.web_page import filled, write_whole

FILE_NAME = "index.html"
_MAX_EPISODES = 12  # of a clip, that are listed one by one

_Files = Mapping[str, os.DirEntry[str]]  # what lies in the folder, by name


def write_index(folder: Path) -> Path:
    """Write index.html beside the clips of a run; returns its path, which it replaces.

    folder is the run's folder or the `videos` in it. The page needs nothing but the files beside it, so the folder may
    be moved. A side file that can't be read is named on the page and else passed over. Raises VideoError only where
    the page can't be written.
    """
    videos = folder / "videos" if (folder / "videos").is_dir() else folder
    try:
        with os.scandir(videos) as found:
            files = {entry.name: entry for entry in found}
    except OSError as error:
        raise VideoError(f"{videos}: can't be read: {error.strerror or error}") from error
    write_whole(videos / FILE_NAME, _page(videos, files))
    return videos / FILE_NAME


@dataclass(frozen=True)
class _Card:
    """One clip on the page."""

    name: str
    body: str  # HTML
    keys: Mapping[str, float]
    """By what it can be sorted; what is not known is missing."""


def _page(videos: Path, files: _Files) -> Iterator[str]:
    cards, broken = [], list[str]()
    for name in sorted(name for name in files if name.endswith(".json")):
        try:
            cards.append(_card(Clip.load(videos / name), files))
        except Exception as error:  # whatever is in a file: the run and the other clips have nothing to do with it
            broken.append(f"{name} is passed over: {str(error).removeprefix(f'{videos / name}: ')}")
    cards.sort(key=lambda card: (card.keys.get("samples", -1.0), card.keys.get("written", 0.0), card.name))
    returns = [card.keys["return"] for card in cards if "return" in card.keys]
    best = max(returns) if len(cards) > 1 and returns else None
    place = videos.resolve()
    pieces = {
        "TITLE": [html.escape(place.parent.name if place.name == "videos" else place.name)],
        "COUNT": [f"{len(cards)} clip{'' if len(cards) == 1 else 's'}"],
        "CARDS": [_article(card, is_best=card.keys.get("return", math.nan) == best) for card in cards],
        "NOTES": [_note(note) for note in broken],
    }
    return filled(FILE_NAME, pieces)


def _article(card: _Card, *, is_best: bool) -> str:
    data = "".join(f' data-{key}="{value:.12g}"' for key, value in card.keys.items())
    mark = '<b class="best" title="The highest mean return of all clips">best</b>' if is_best else ""
    name = html.escape(card.name)
    return f'<article data-name="{name}"{data}>\n<h2>{name}{mark}</h2>\n{card.body}</article>\n'


def _card(clip: Clip, files: _Files) -> _Card:
    keys = {"duration": float(clip.duration)}
    if clip.samples is not None:
        keys["samples"] = float(clip.samples)
    if clip.mean_return is not None and math.isfinite(clip.mean_return):
        keys["return"] = float(clip.mean_return)
    if clip.path.name in files:
        keys["written"] = files[clip.path.name].stat().st_mtime
    body = _media(clip, files) + _figures(clip) + _episodes(clip) + _links(clip, files)
    return _Card(clip.path.stem, body + "".join(_note(str(note)) for note in clip.notes), keys)


def _note(text: str) -> str:
    return f'<p class="note">{html.escape(text)}</p>\n'


def _media(clip: Clip, files: _Files) -> str:
    name = clip.path.name
    address, label = quote(name), f'aria-label="{html.escape(clip.path.stem)}"'
    if name not in files:
        return f'<div class="media missing">{html.escape(name)} is not here any more</div>\n'
    size = f'width="{int(clip.width)}" height="{int(clip.height)}"'
    if files[name].is_dir():
        with os.scandir(files[name].path) as found:
            first = min((entry.name for entry in found if entry.name.endswith(".png")), default=None)
        still = f'<img src="{address}/{quote(first)}" {size} loading="lazy" alt="The first picture">' if first else ""
        return f'<a class="media" href="{address}/" {label}>{still}</a>\n'
    if clip.path.suffix.lower() == ".gif":
        return f'<img class="media" src="{address}" {size} loading="lazy" alt="" {label}>\n'
    poster = _beside(files, clip.poster, f"{clip.path.stem}.png")
    still = f'poster="{quote(poster)}" preload="none"' if poster else 'preload="metadata"'
    return f'<video class="media" src="{address}" {size} {still} {label} controls loop muted playsinline></video>\n'


def _figures(clip: Clip) -> str:
    envs = clip.env_ids or (clip.env_id,)
    facts = {
        "samples": None if clip.samples is None else f"{int(clip.samples):,}".replace(",", "\u202f"),
        "mean return": None if clip.mean_return is None else f"{clip.mean_return:.2f}",
        "duration": f"{clip.duration:.1f} s",
        "camera": str(clip.camera).replace(",", ", "),
        "env" if len(envs) == 1 else "envs": ", ".join(str(env) for env in envs),
        "picture": f"{int(clip.width)} × {int(clip.height)}, {clip.fps:g} per second",
        "engine": str(clip.engine),
        "seed": None if clip.seed is None else str(clip.seed),
        "model": None if clip.model_file is None else str(clip.model_file),
    }
    rows = (f"<dt>{name}</dt><dd>{html.escape(text)}</dd>" for name, text in facts.items() if text is not None)
    return f"<dl>{''.join(rows)}</dl>\n"


def _episodes(clip: Clip) -> str:
    items = [_episode(episode) for episode in clip.episodes[:_MAX_EPISODES]]
    if len(clip.episodes) > _MAX_EPISODES:
        items.append(f"<li>and {len(clip.episodes) - _MAX_EPISODES} more</li>")
    return f'<ol class="episodes" aria-label="Episodes">{"".join(items)}</ol>\n' if items else ""


def _episode(episode: Episode) -> str:
    total = "" if episode.episode_return is None else f" {float(episode.episode_return):.1f}"
    outcome = html.escape(str(episode.outcome))
    known = outcome if outcome in ("fail", "success", "time", UNFINISHED) else "other"
    return f'<li class="{known}" title="{int(episode.length)} steps">{outcome}{total}</li>'


def _links(clip: Clip, files: _Files) -> str:
    stem = clip.path.stem
    wanted = {
        "replay in 3-D": _beside(files, clip.replay, f"{stem}.html"),
        "trace": _beside(files, clip.trace, f"{stem}.trace"),
        "file": _beside(files, clip.path),
        "figures": clip.side_file.name,
    }
    links = (f'<a href="{quote(name)}">{text}</a>' for text, name in wanted.items() if name)
    return f'<p class="links">{" ".join(links)}</p>\n'


def _beside(files: _Files, *places: Path | str | None) -> str | None:
    """The name of the first of places that lies in the folder."""
    names = (Path(place).name for place in places if place is not None)
    return next((name for name in names if name in files), None)
