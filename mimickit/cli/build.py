"""Builds the parts of a run, in their order: run folder, engine, environment, agent, loggers."""

import itertools
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from mimickit import registry
from mimickit.cli.options import CONFIG_FILE, Mode, run_folder_of
from mimickit.cli.settings import MODEL_FILE, Settings
from mimickit.config import dump_yaml, find_path
from mimickit.loggers.base import Logger, MultiLogger
from mimickit.loggers.text_logger import keep_older
from mimickit.registry import Kind
from mimickit.util.keys import ConfigError

FILE_KEYS = ("file", "char_file", "motion_file")  # looked up in the working directory, then in the project
WANDB_ID_FILE = "wandb_id.txt"


def make_run_folder(settings: Settings) -> Path:
    """Create the run folder; a default name is never one that exists.

    Raises:
        ConfigError: it can't be made, or holds the model of another training.
    """
    named = settings.options.out_dir
    if named is None and settings.resume is not None:
        named = run_folder_of(settings.resume)
    try:
        if named is None:
            return _new_folder(settings)
        named.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise ConfigError(f"--out_dir: can't make {named or 'output'}: {err.strerror}") from None
    if settings.options.mode is Mode.TRAIN and settings.resume is None and (named / MODEL_FILE).exists():
        raise ConfigError(
            f"--out_dir: {named} holds a trained {MODEL_FILE} already; go on with it (--resume {named}) "
            "or name another folder"
        )
    return named


def _new_folder(settings: Settings) -> Path:
    env = Path(settings.env.source.split(" (")[0]).stem.removesuffix("_env")
    if env == Path(CONFIG_FILE).stem:
        env = settings.env.name("env_name").rpartition(":")[2]
    name = f"{settings.options.mode.value}_{env}_{time.strftime('%Y-%m-%d_%H-%M-%S')}"
    for suffix in itertools.chain([""], (f"_{number}" for number in itertools.count(2))):
        folder = Path("output") / (name + suffix)
        try:
            folder.mkdir(parents=True)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("unreachable")


def build_engine(settings: Settings, out_dir: Path) -> Any:
    """The engine, with the clips' folder inside the run folder."""
    cls = registry.resolve(Kind.ENGINE, settings.engine.name("engine_name"), f"{settings.engine.source}: engine_name")
    video = replace(settings.video, out_dir=out_dir / "videos")
    if video.enabled:
        _require_encoder()
    return cls(
        {key: value for key, value in settings.engine.values.items() if key != "video"},
        num_envs=settings.num_envs,
        device=device_of(settings),
        video=video,
        seed=settings.options.rand_seed,
        config_source=settings.engine.source,
    )


def _require_encoder() -> None:
    """Raise ConfigError, before anything is trained, where no ffmpeg is to be found."""
    from mimickit.video.errors import VideoError
    from mimickit.video.frame_writer import find_ffmpeg

    try:
        find_ffmpeg()
    except VideoError as error:
        raise ConfigError(f"--video: {error}") from None


def build_env(settings: Settings, engine: Any) -> Any:
    """The environment; paths in its configuration are looked up first."""
    cls = registry.resolve(Kind.ENV, settings.env.name("env_name"), f"{settings.env.source}: env_name")
    return cls(
        find_files(settings.env.values, settings.env.source),
        engine,
        num_envs=settings.num_envs,
        device=device_of(settings),
        seed=settings.options.rand_seed,
        config_source=settings.env.source,
    )


def build_agent(settings: Settings, env: Any) -> Any:
    """The agent, not yet with a model."""
    block = settings.agent
    assert block is not None
    cls = registry.resolve(Kind.AGENT, block.name("agent_name"), f"{block.source}: agent_name")
    values = find_files(block.values, block.source)
    if settings.options.mode is Mode.TRAIN and settings.test_episodes is not None:
        values["test_episodes"] = settings.test_episodes
    return cls(values, env, device=device_of(settings), seed=settings.options.rand_seed, config_source=block.source)


def build_logger(settings: Settings, out_dir: Path, config: Mapping[str, Any]) -> Logger:
    """The loggers that were asked for, each given the run folder; the text logger always."""
    resumed = settings.resume is not None and out_dir.resolve() == run_folder_of(settings.resume).resolve()
    loggers: list[Logger] = [_logger_class("txt")(out_dir, append=resumed)]
    for name in dict.fromkeys(settings.options.logger):
        if name == "wandb":
            loggers.append(_build_wandb(settings, out_dir, config, resumed=resumed))
        elif name != "txt":
            loggers.append(_logger_class(name)(out_dir))
    return MultiLogger(loggers)


def _build_wandb(settings: Settings, out_dir: Path, config: Mapping[str, Any], *, resumed: bool) -> Logger:
    options, id_file = settings.options, out_dir / WANDB_ID_FILE
    old_id = id_file.read_text(encoding="utf-8").strip() if resumed and id_file.exists() else None
    logger = _logger_class("wandb")(
        out_dir,
        config=config,
        run_name=options.run_name,
        project=options.wandb_project,
        group=options.wandb_group,
        tags=options.wandb_tags,
        mode=options.wandb_mode.value if options.wandb_mode else None,
        run_id=options.wandb_id or old_id,
    )
    id_file.write_text(f"{logger.run_id}\n", encoding="utf-8")
    return cast(Logger, logger)


def _logger_class(name: str) -> Any:
    return registry.resolve(Kind.LOGGER, name, "--logger")


def device_of(settings: Settings) -> str:
    """The device, once it is known to be there.

    Raises:
        ConfigError: no device of that name on this machine.
    """
    import torch

    name = settings.options.devices[0]
    try:
        torch.zeros(1, device=name)
    except (RuntimeError, AssertionError) as err:
        reason = str(err).splitlines()[0]
        raise ConfigError(f"--devices: expected cpu or cuda:N, found {name!r}: {reason}") from None
    return name


def prepare_torch(settings: Settings) -> None:
    """Seed torch, and keep it to one thread on the CPU: for small matrices several are slower."""
    import torch

    if settings.options.devices == ("cpu",) and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    torch.manual_seed(settings.options.rand_seed)


def find_files(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """A copy of a configuration in which file, char_file and motion_file, at any depth, are paths of existing files."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            found[key] = find_files(value, f"{source}: {key}")
        elif isinstance(value, list):
            found[key] = [find_files(v, f"{source}: {key}") if isinstance(v, Mapping) else v for v in value]
        elif isinstance(value, str) and key in FILE_KEYS:
            found[key] = str(find_path(value, f"{source}: {key}"))
        else:
            found[key] = value
    return found


def save_config(config: Mapping[str, Any], out_dir: Path) -> None:
    """Write the whole merged configuration into the run folder; an older one is kept beside it.

    Raises:
        ConfigError: the folder can't be written in.
    """
    try:
        keep_older(out_dir / CONFIG_FILE)
        (out_dir / CONFIG_FILE).write_text(dump_yaml(config), encoding="utf-8")
    except OSError as err:
        raise ConfigError(f"--out_dir: can't write in {out_dir}: {err.strerror}") from None
