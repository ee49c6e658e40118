"""From what was asked for to what is built: the merged configuration of a run; nothing is written here."""

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mimickit.cli.options import Mode, Options, Request, run_folder_of
from mimickit.cli.sources import VIDEO, Block, flag_origins, leaf_origins, true_sources
from mimickit.config import find_path, load_yaml, merge
from mimickit.factory import CONFIG_FILE, DEFAULT_ENV
from mimickit.registry import Kind, resolve
from mimickit.util.keys import ConfigError
from mimickit.video.config import VideoConfig

DEFAULT_VIEW_ENV = "data/envs/view_motion_humanoid_env.yaml"
DEFAULT_MODEL = "data/models/humanoid_walk/model.pt"
DEFAULT_NUM_ENVS = {Mode.TRAIN: 512, Mode.TEST: 32, Mode.VIEW: 1}
DEFAULT_EPISODES = {Mode.TEST: 32, Mode.VIEW: 1}


@dataclass(frozen=True)
class Settings:
    """All that a run is built from."""

    request: Request
    engine: Block
    env: Block
    agent: Block | None  # None in view mode
    video: VideoConfig
    film: Block  # what video was read from
    num_envs: int
    test_episodes: int | None  # None in training: what the agent file says
    model_file: Path | None
    resume: Path | None

    @property
    def options(self) -> Options:
        """The flags."""
        return self.request.options

    @property
    def blocks(self) -> tuple[Block | None, ...]:
        """All blocks, for true_sources()."""
        return (self.engine, self.env, self.agent, self.film)

    def to_dict(self, argv: list[str]) -> dict[str, Any]:
        """Plain values for config.yaml and W&B: everything that decides what the run does."""
        options = self.options
        parts = {"engine": self.engine, "env": self.env, "agent": self.agent}
        video = {key: _plain(value) for key, value in asdict(self.video).items() if key != "out_dir"}
        return {
            "command": shlex.join(argv),
            "flags": {name: list(given.words) or ["true"] for name, given in self.request.given.items()},
            "mode": options.mode.value,
            "num_envs": self.num_envs,
            "rand_seed": options.rand_seed,
            "max_samples": options.max_samples,
            "test_episodes": self.test_episodes,
            "devices": list(options.devices),
            "model_file": _plain(self.model_file),
            **{name: block.values for name, block in parts.items() if block is not None},
            "video": video,
        }


def load_settings(request: Request) -> Settings:
    """Read the YAML files, put overrides on top, and fill in defaults.

    Precedence, weakest first: the engine file, the env file's ``engine:`` block, arg files, the command line.
    A model or a resumed run brings the engine, env and agent it was trained with (config.yaml beside it),
    unless files are named.

    Raises:
        ConfigError: a file that isn't there or can't be read, a value that can't be.
    """
    options = request.options
    model_file, resume = _model_file(request), _resume(request)
    companion = _companion(resume or model_file)
    env = _block(request, companion, "env", DEFAULT_VIEW_ENV if options.mode is Mode.VIEW else DEFAULT_ENV)
    agent = None if options.mode is Mode.VIEW else _block(request, companion, "agent", Options.agent_config)
    engine = _engine(request, companion, env)
    film = _film(request, engine)
    num_envs = options.num_envs or DEFAULT_NUM_ENVS[options.mode]
    with true_sources(engine, env, film):
        video = VideoConfig.from_mapping(film.values, film.source)
        if max(video.env_ids) >= num_envs:
            key = "envs" if video.envs else "env"
            raise ConfigError(
                f"{film.source}: {key}: expected an environment below --num_envs {num_envs}, found {max(video.env_ids)}"
            )
    for name, given in request.given.items():
        if name.startswith("video_") and given.on_command_line and not video.enabled:
            raise ConfigError(f"{request.place(name)} has no effect without --video true")
    episodes = options.test_episodes or DEFAULT_EPISODES.get(options.mode)
    return Settings(request, engine, env, agent, video, film, num_envs, episodes, model_file, resume)


def _model_file(request: Request) -> Path | None:
    options = request.options
    if options.model_file is not None:
        return find_path(options.model_file, request.place("model_file"))
    default = "env_config" not in request.given and "agent_config" not in request.given
    if options.mode is Mode.TEST and default:
        return find_path(DEFAULT_MODEL, "the shipped model (name another with --model_file)")
    return None


def _resume(request: Request) -> Path | None:
    path = request.options.resume
    return find_path(path, request.place("resume")) if path is not None else None


def _companion(path: Path | None) -> dict[str, Any] | None:
    """The configuration of the run that a model, checkpoint or run folder comes from, if it lies there."""
    if path is None:
        return None
    file = run_folder_of(path) / CONFIG_FILE
    return load_yaml(file) | {"file": str(file)} if file.is_file() else None


def _block(request: Request, companion: Mapping[str, Any] | None, name: str, default: str) -> Block:
    """A part's file, or its block in the companion, with the flags that override keys of it."""
    flag = f"{name}_config"
    if flag not in request.given and companion is not None and isinstance(companion.get(name), Mapping):
        values, source = dict(companion[name]), f"{companion['file']} ({name})"
    else:
        file = find_path(getattr(request.options, flag) or default, request.place(flag))
        values, source = load_yaml(file), str(file)
    return Block(merge(values, request.overrides[name]), source, flag_origins(request, name))


def _engine(request: Request, companion: Mapping[str, Any] | None, env: Block) -> Block:
    """The engine's file, with the environment's engine block, taken out of that, and then the flags on top."""
    unchanged = replace(request, overrides={**request.overrides, "engine": {}})
    block = _block(unchanged, companion, "engine", Options.engine_config)
    with true_sources(env):
        over = env.values.pop("engine", None) or {}
        if not isinstance(over, Mapping):
            raise ConfigError(f"{env.source}: engine: expected a block of engine keys, found {over!r}")
    within = {key.removeprefix("engine."): place for key, place in env.origins.items() if key.startswith("engine.")}
    origins = {**leaf_origins(over, f"{env.source}: engine"), **within, **block.origins}
    before = merge(block.values, over)
    values = _without_keys_of_another(merge(before, request.overrides["engine"]), before, block.source)
    return Block(values, block.source, origins)


def _without_keys_of_another(values: dict[str, Any], before: Mapping[str, Any], source: str) -> dict[str, Any]:
    """An engine block in which a flag names another engine: the keys of the one before alone are gone."""
    old, new = before.get("engine_name"), values.get("engine_name")
    if old == new or not (isinstance(old, str) and isinstance(new, str)):
        return values
    own = {name: set(getattr(resolve(Kind.ENGINE, name, source), "EXTRA_KEYS", ())) for name in (old, new)}
    return {key: value for key, value in values.items() if key not in own[old] - own[new]}


def _film(request: Request, engine: Block) -> Block:
    """The fields of VideoConfig: the engine's video block, and the flags on top."""
    with true_sources(engine):
        block = engine.values.get("video") or {}
        if not isinstance(block, Mapping):
            raise ConfigError(f"{engine.source}: video: expected a block of keys, found {block!r}")
    default = {"enabled": True} if request.options.mode is Mode.VIEW else {}
    flags = {name: " ".join(given.words) or "true" for name, given in request.video.items()}
    origins = {key: _video_place(engine, key) for key in block}
    origins |= {name: request.place(_video_flag(request, name)) for name in flags}
    return Block({**default, **block, **flags}, VIDEO, origins)


def _video_place(engine: Block, key: str) -> str:
    """Where a key of the engine's video block comes from."""
    place = engine.origins.get(f"video.{key}") or engine.origins.get("video") or engine.source
    return place if "--engine.video" in place else f"{place}: video"


def _video_flag(request: Request, field: str) -> str:
    """The flag that set a field of VideoConfig."""
    if field == "enabled":
        return "video"
    return f"video_{field}" if f"video_{field}" in request.given else "video_size"


def _plain(value: Any) -> Any:
    """YAML values of enums, paths and tuples."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    return getattr(value, "value", value)
