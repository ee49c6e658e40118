"""Builds the parts of a run, in their order: engine, environment, agent, loggers."""

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from mimickit.cli import callbacks
from mimickit.cli.options import Mode, run_folder_of
from mimickit.cli.settings import Settings
from mimickit.cli.sources import Block
from mimickit.config import dump_yaml
from mimickit.factory import CONFIG_FILE, find_files, make_part
from mimickit.loggers.base import Logger, MultiLogger
from mimickit.loggers.text_logger import keep_older
from mimickit.media.types import CLIPS_DIR
from mimickit.registry import Kind
from mimickit.util.keys import ConfigError

WANDB_ID_FILE = "wandb_id.txt"


def build_engine(settings: Settings, out_dir: Path) -> Any:
    """The engine, with the clips' folder inside the run folder."""
    from mimickit.engines.engine import Engine

    block, video = settings.engine, replace(settings.video, out_dir=out_dir / CLIPS_DIR)
    if video.enabled:
        _require_encoder(settings)
    config = {key: value for key, value in block.values.items() if key != "video"}
    return _make_part(settings, Kind.ENGINE, block, Engine, config, num_envs=settings.num_envs, video=video)


def _require_encoder(settings: Settings) -> None:
    """Raise ConfigError, before anything is trained, where no ffmpeg is to be found."""
    from mimickit.video.errors import VideoError
    from mimickit.video.files.frame_writer import find_ffmpeg

    try:
        find_ffmpeg()
    except VideoError as error:
        raise ConfigError(f"{settings.request.place('video')}: {error}") from None


def build_env(settings: Settings, engine: Any) -> Any:
    """The environment; paths in its configuration are looked up first."""
    from mimickit.envs.base_env import BaseEnv

    block = settings.env
    config = find_files(block.values, block.source)
    return _make_part(settings, Kind.ENV, block, BaseEnv, config, engine, num_envs=settings.num_envs)


def add_callbacks(settings: Settings, env: Any, out_dir: Path) -> tuple[Any, Any]:
    """The environment with the callbacks that were asked for around it, and what tells them of the run; without any the
    environment itself, and nothing.
    """
    specs = callbacks.callback_specs(settings)
    if not specs:
        return env, None
    from mimickit.media.callback_env import CallbackEnv
    from mimickit.media.callbacks import Callback, Run
    from mimickit.media.observer import CallbackObserver
    from mimickit.media.store import MediaStore

    made = [make_part(Kind.CALLBACK, spec.name, spec.source, Callback, **spec.options) for spec in specs]
    run = Run(out_dir, env, MediaStore(out_dir, fps=env.control_freq), seed=settings.options.rand_seed)
    run.env = CallbackEnv(env, made, run)
    return run.env, CallbackObserver(made, run)


def build_agent(settings: Settings, env: Any) -> Any:
    """The agent, not yet with a model."""
    from mimickit.learning.base_agent import BaseAgent

    block = settings.agent
    assert block is not None
    config = find_files({key: value for key, value in block.values.items() if key != callbacks.KEY}, block.source)
    if settings.options.mode is Mode.TRAIN and settings.test_episodes is not None:
        config["test_episodes"] = settings.test_episodes
    return _make_part(settings, Kind.AGENT, block, BaseAgent, config, env)


def _make_part(settings: Settings, kind: Kind, block: Block, base: type, /, *args: Any, **options: Any) -> Any:
    """What a block names, with what every part is given."""
    key = f"{kind.value}_name"
    options |= {"device": device_of(settings), "seed": settings.options.rand_seed, "config_source": block.source}
    return make_part(kind, block.name(key), f"{block.source}: {key}", base, *args, **options)


def build_logger(settings: Settings, out_dir: Path, config: Mapping[str, Any], samples: int = 0) -> Logger:
    """The loggers that were asked for, each given the run folder; the text logger always.

    Args:
        samples: taken in training so far; what a resumed run had written down past them is not gone on with.
    """
    resumed = settings.resume is not None and out_dir.resolve() == run_folder_of(settings.resume).resolve()
    resume_at = samples if resumed else None
    loggers: list[Logger] = []
    try:
        for name in dict.fromkeys(["txt", *settings.options.logger]):
            if name == "wandb":
                loggers.append(_build_wandb(settings, out_dir, config, resumed=resumed))
            else:
                options = {"resume_at": resume_at} if name in ("txt", "tb") else {}
                loggers.append(_make_logger(settings, name, out_dir, **options))
    except BaseException:
        MultiLogger(loggers).close()
        raise
    return MultiLogger(loggers)


def _build_wandb(settings: Settings, out_dir: Path, config: Mapping[str, Any], *, resumed: bool) -> Logger:
    options, id_file = settings.options, out_dir / WANDB_ID_FILE
    old_id = id_file.read_text(encoding="utf-8").strip() if resumed and id_file.exists() else None
    logger: Any = _make_logger(
        settings,
        "wandb",
        out_dir,
        config=config,
        run_name=options.run_name,
        project=options.wandb_project,
        group=options.wandb_group,
        tags=options.wandb_tags,
        mode=options.wandb_mode.value if options.wandb_mode else None,
        run_id=options.wandb_id or old_id,
        keeps_model=options.wandb_model,
    )
    id_file.write_text(f"{logger.run_id}\n", encoding="utf-8")
    return cast(Logger, logger)


def _make_logger(settings: Settings, name: str, out_dir: Path, **options: Any) -> Logger:
    return cast(Logger, make_part(Kind.LOGGER, name, settings.request.place("logger"), Logger, out_dir, **options))


def device_of(settings: Settings) -> str:
    """The device, once it is known to be there.

    Raises:
        ConfigError: no device of that name on this machine.
    """
    import torch

    name = settings.options.devices[0]
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", name)
    if match is None:
        raise ConfigError(f"{settings.request.place('devices')}: expected cpu or cuda:N, found {name!r}")
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if name != "cpu" and int(match[1] or 0) >= count:
        raise ConfigError(
            f"{settings.request.place('devices')}: found {name!r}, but torch sees {count or 'no'} CUDA devices here"
        )
    return name


def prepare_torch(settings: Settings) -> None:
    """Seed torch, and keep it to one thread on the CPU: for small matrices several are slower."""
    import torch

    if settings.options.devices == ("cpu",) and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    torch.manual_seed(settings.options.rand_seed)


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
