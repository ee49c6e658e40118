"""The modes that need no simulation: they work on traces and clips that runs have left."""

import itertools
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from mimickit.cli.options import Mode, Request
from mimickit.cli.sources import VIDEO, Block, true_sources
from mimickit.config import load_yaml
from mimickit.util.keys import ConfigError
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.files.names import beside, suffix_of
from mimickit.video.pages.group_page import write_group_page
from mimickit.video.pages.run_index import FILE_NAME as INDEX_FILE
from mimickit.video.pages.run_index import write_index
from mimickit.video.pages.run_record import find_runs, load_run
from mimickit.video.traces.compare import compare, find_contender
from mimickit.video.traces.refilm import film, film_picks, trace_footage
from mimickit.video.traces.trace import Trace, is_trace

# what of a trace's own configuration is not about the picture
_NOT_PICTURE = (
    "enabled", "trace", "replay", "defer", "every", "keep_last", "keep_best", "max_seconds", "strict", "out_dir",
)  # fmt: skip
# flags that go before what the trace's own configuration says of others
_INSTEAD_OF = {"env": ("envs", "pick"), "envs": ("pick",), "env_layout": ("pick",), "camera": ("views",)}


def run_without_simulation(request: Request) -> None:
    """Do what a request of mode film, compare or replay asks for, and print the files that were made.

    Raises ConfigError, VideoError.
    """
    modes: dict[Mode, Callable[[Request], list[Path]]] = {
        Mode.FILM: _film, Mode.COMPARE: _compare, Mode.REPLAY: _replay,
    }  # fmt: skip
    for path in modes[request.options.mode](request):
        print(path, flush=True)


def _film(request: Request) -> list[Path]:
    traces = _traces(request)
    clips = []
    for path in traces:
        with Trace(path) as trace:
            config = picture_config(request, trace.video)
            name = beside(path.with_name(path.name.removesuffix(".part")), suffix_of(config.format))
            folder = request.options.out_dir or path.parent
            if config.pick:
                clips += film_picks(trace, config, folder / name.name)
                continue
            ids = config.envs or ((config.env,) if "env" in request.video else ())
            clips += film(trace_footage(trace, ids), config, folder / name.name)
    _renew_pages(clip.path.parent for clip in clips)
    return [clip.path for clip in clips]


def _renew_pages(folders: Iterable[Path]) -> None:
    """Where a run's clips have a page, bring it up to date."""
    for folder in dict.fromkeys(folders):
        if (folder / INDEX_FILE).is_file():
            write_index(folder)


def _compare(request: Request) -> list[Path]:
    if request.options.page is not None:
        return [_compare_on_page(request, request.options.page)]
    runs, labels = request.options.runs, _labels(request, len(request.options.runs))
    if len(runs) < 2:
        place = request.place("runs")
        raise ConfigError(f"{place}: expected run folders, traces or clips, two or more, found {len(runs)}")
    try:
        contenders = [find_contender(Path(run), label) for run, label in zip(runs, labels, strict=True)]
    except (VideoError, OSError, ValueError) as error:
        raise ConfigError(f"{request.place('runs')}: {error}") from None
    config = picture_config(request, {"overlay": "time,return"})
    folder = request.options.out_dir or new_folder("compare")
    return [clip.path for clip in compare(contenders, config, folder / f"comparison{suffix_of(config.format)}")]


def _compare_on_page(request: Request, page: Path) -> Path:
    """Flags of films mean nothing on a page, and are refused."""
    for name in request.given:
        if name.startswith("video") or name == "out_dir":
            raise ConfigError(f"{request.place(name)} has no effect with --page")
    try:
        folders = [folder for run in request.options.runs for folder in find_runs(Path(run))]
        labels = _labels(request, len(folders))
        runs = [load_run(folder, label) for folder, label in zip(folders, labels, strict=True)]
    except VideoError as error:
        raise ConfigError(f"{request.place('runs')}: {error}") from None
    if not runs:
        raise ConfigError("--runs is missing: expected the folders of runs")
    page = page if page.suffix else page / "index.html"
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{request.place('page')}: can't make {page.parent}: {error.strerror}") from None
    return write_group_page(runs, page, page.resolve().parent.name if page.stem == "index" else page.stem)


def _replay(request: Request) -> list[Path]:
    from mimickit.video.pages.replay import write_replay

    traces = _traces(request)
    labels = _labels(request, len(traces))
    names = [label or _name_of(path) for path, label in zip(traces, labels, strict=True)]
    folder = request.options.out_dir or traces[0].parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{request.place('out_dir')}: can't make {folder}: {error.strerror}") from None
    page = folder / f"{'_'.join(_name_of(path) for path in traces[:4])}.html"
    for number in itertools.count(1):
        if not page.exists():
            break
        page = page.with_name(f"{'_'.join(_name_of(path) for path in traces[:4])}_{number:03d}.html")
    write_replay(traces, page, labels=names)
    _renew_pages([folder])
    return [page]


def new_folder(mode: str) -> Path:
    """Where a mode puts what it makes, unless a folder was named."""
    return Path("output") / f"{mode}_{time.strftime('%Y-%m-%d_%H-%M-%S')}"


def _traces(request: Request) -> list[Path]:
    """The traces that were named. Raises ConfigError."""
    words = request.options.trace
    if not words:
        mode = request.options.mode.value
        raise ConfigError(f"--trace is missing: expected a trace or a run folder for --mode {mode}")
    return [_trace_of(Path(word), request.place("trace")) for word in words]


def _trace_of(path: Path, place: str) -> Path:
    if path.is_dir():
        # of a run that was killed there may be none but one without an end
        found = sorted(path.rglob("*.trace"), key=_age) or sorted(path.rglob("*.trace.part"), key=_age)
        if not found:
            raise ConfigError(f"{place}: expected a trace or a folder with traces in it, found none in {path}")
        return found[-1]
    if path.is_file() and not is_trace(path):  # the clip itself was named
        other = path.with_suffix(".trace")
        if not other.is_file():
            raise ConfigError(f"{place}: expected a trace, found {path}, beside which there is none")
        return other
    if not path.is_file():
        raise ConfigError(f"{place}: no such file: {path}")
    return path


def _age(path: Path) -> int:
    return path.stat().st_mtime_ns


def _labels(request: Request, count: int) -> list[str | None]:
    labels = [label for word in request.options.labels for label in word.split(",")]
    if labels and len(labels) != count:
        raise ConfigError(f"{request.place('labels')}: expected one for each of the {count}, found {len(labels)}")
    return [*labels] if labels else [None] * count


def _name_of(path: Path) -> str:
    return path.name.partition(".")[0]


def picture_config(request: Request, base: dict[str, Any]) -> VideoConfig:
    """How to film: base (a trace's own configuration), an engine file's video block if one was named, and the flags."""
    values = {key: value for key, value in base.items() if key not in _NOT_PICTURE and value not in (None, [])}
    if values.get("pick"):  # every environment was traced to pick from
        values.pop("envs", None)
    if "engine_config" in request.given:
        values |= load_yaml(request.options.engine_config, request.place("engine_config")).get("video") or {}
    flags = {name: " ".join(given.words) or "true" for name, given in request.video.items() if name != "enabled"}
    for flag, others in _INSTEAD_OF.items():
        if flag in flags:
            values = {key: value for key, value in values.items() if key not in others}
    origins = dict.fromkeys(values, "the trace's own configuration")
    origins |= {name: request.place(f"video_{name}") for name in flags}
    block = Block({**values, **flags}, VIDEO, origins)
    with true_sources(block):
        return VideoConfig.from_mapping(block.values, block.source)
