"""One policy tested on several engines from the same start: a table of its errors, and one film side by side."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mimickit.cli.build import build_engine
from mimickit.cli.film import new_folder, picture_config
from mimickit.cli.flags import Given, read_value
from mimickit.cli.options import VIDEO_FLAG, Mode, Request, make_request
from mimickit.cli.results import RESULT_FILE, write_json
from mimickit.cli.settings import load_settings
from mimickit.cli.sources import true_sources
from mimickit.config import find_path
from mimickit.media.types import MEDIA_KEY
from mimickit.registry import Kind, resolve
from mimickit.util.keys import ConfigError
from mimickit.video.files.names import suffix_of
from mimickit.video.traces.compare import compare, find_contender
from mimickit.video.traces.trace import Trace

_MOMENTS = (0.0, 0.5, 1.0, 2.0, 5.0)  # s, at which the films are held against each other
_NOT_MEASURED = ("mode", "seed", "engine", "env", "env_config", "model_file", "num_envs", "samples", MEDIA_KEY)

RunTest = Callable[[Request], Mapping[str, Any]]


def run_sim2sim(request: Request, run_test: RunTest) -> None:
    """Test on every engine of --engines, each in a folder of its own, then print a table and write the film.

    Args:
        run_test: runs a request of mode test and returns what its result.json holds.

    Raises ConfigError, VideoError, and what a test raises.
    """
    engines = _engines(request)
    folder = request.options.out_dir or new_folder("sim2sim")
    folders = {name: folder / label for name, label in engines.items()}
    _check(request, engines, folder)
    results = {label: dict(run_test(_test_on(request, name, folder / label))) for name, label in engines.items()}
    apart = {}
    contenders = [find_contender(folders[name], label) for name, label in engines.items()] if _films(request) else []
    if contenders and all(contender.trace is not None for contender in contenders):
        traces = {c.name: c.trace for c in contenders if c.trace is not None}
        apart = distances(traces)
    print(f"\n{table(results, apart)}\n", flush=True)
    content: dict[str, Any] = {"engines": results, "apart_m": apart}
    if contenders:
        config = picture_config(request, {"overlay": "time,return"})
        clips = compare(contenders, config, folder / f"sim2sim{suffix_of(config.format)}")
        content["film"] = [clip.path.name for clip in clips]
        for clip in clips:
            print(clip.path, flush=True)
    write_json(folder / RESULT_FILE, content)


def _check(request: Request, engines: Mapping[str, str], folder: Path) -> None:
    """Refuse, before anything is simulated, an engine that isn't there or can't be made here. Raises ConfigError."""
    place = request.place("engines")
    for name, label in engines.items():
        if _is_file(name):
            find_path(name, place)
        else:
            resolve(Kind.ENGINE, name, place)
        settings = load_settings(_test_on(request, name, folder / label))
        with true_sources(*settings.blocks):
            build_engine(settings, folder / label).close()  # it opens nothing before it is given objects


def _films(request: Request) -> bool:
    given = request.given.get("video")
    return given is None or bool(read_value(VIDEO_FLAG, given))


def _engines(request: Request) -> dict[str, str]:
    """What was named, and what each is called: 'newton', or a file's name without '_engine'."""
    names = [name for word in request.options.engines for name in word.split(",") if name]
    labels = {name: Path(name).stem.removesuffix("_engine") if _is_file(name) else name.rpartition(":")[2]
              for name in names}  # fmt: skip
    if len(names) < 2 or len(set(labels.values())) < len(names):
        raise ConfigError(f"{request.place('engines')}: expected two or more engines, each once, for instance "
                          f"mujoco,newton; found {', '.join(names) or 'none'}")  # fmt: skip
    return labels


def _is_file(name: str) -> bool:
    return name.endswith((".yaml", ".yml"))


def _test_on(request: Request, engine: str, folder: Path) -> Request:
    """The test on one engine. A name takes the place of the engine_name in the run's own engine block."""
    place = request.given["engines"].source
    flag = "engine_config" if _is_file(engine) else "engine.engine_name"
    given = {name: words for name, words in request.given.items() if name != "engines"}
    given |= {"mode": Given((Mode.TEST.value,), place), "out_dir": Given((str(folder),), place)}
    given.setdefault("video", Given(("true",), place))
    return make_request({**given, flag: Given((engine,), place)})


def distances(traces: Mapping[str, Path]) -> dict[str, dict[str, float]]:
    """Mean distance (m) of the first filmed character's bodies from where the first trace has them, after so many
    seconds; of every trace but the first.
    """
    first, *others = traces
    with Trace(traces[first]) as base:
        return {name: _distances(base, traces[name]) for name in others}


def _distances(base: Trace, path: Path) -> dict[str, float]:
    found = {}
    with Trace(path) as other:
        for moment in _MOMENTS:
            index = round(moment / base.dt), round(moment / other.dt)
            if index[0] < len(base) and index[1] < len(other):
                here, there = base.state(index[0])[0].poses[0][0], other.state(index[1])[0].poses[0][0]
                found[f"{moment:g}s"] = float(np.linalg.norm(here - there, axis=-1).mean())
    return found


def table(results: Mapping[str, Mapping[str, Any]], apart: Mapping[str, Mapping[str, float]]) -> str:
    """Markdown: a row a measure, a column an engine."""
    engines = list(results)
    rows = [key for key, value in results[engines[0]].items() if key not in _NOT_MEASURED and _is_number(value)]
    lines = [f"| {' | '.join(('measure', *engines))} |", "|---" * (len(engines) + 1) + "|"]
    lines += [_row(key, [results[engine].get(key) for engine in engines]) for key in rows]
    for moment in dict.fromkeys(moment for found in apart.values() for moment in found):
        values = [0.0 if engine not in apart else apart[engine].get(moment) for engine in engines]
        lines.append(_row(f"m from {engines[0]} after {moment}", values))
    return "\n".join(lines)


def _row(name: str, values: Sequence[Any]) -> str:
    return f"| {' | '.join((name, *(f'{value:.4g}' if _is_number(value) else '–' for value in values)))} |"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
