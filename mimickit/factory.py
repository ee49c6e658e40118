"""Builds engines, environments and agents from configurations: for scripts, adapters and the command line."""

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mimickit import registry
from mimickit.config import find_path, load_yaml, merge
from mimickit.registry import Kind
from mimickit.util.keys import ConfigError

DEFAULT_ENGINE = "data/engines/mujoco_engine.yaml"
DEFAULT_ENV = "data/envs/deepmimic_humanoid_walk_env.yaml"
CONFIG_FILE = "config.yaml"  # in a run folder, and beside a model: the whole merged configuration
MODEL_FILE = "model.pt"  # beside it
FILE_KEYS = ("file", "char_file", "motion_file")  # looked up in the working directory, then in the project

Config = str | Path | Mapping[str, Any]
"""A YAML file, or its content."""


def make_env(
    env_config: Config = DEFAULT_ENV,
    engine_config: Config | None = None,
    *,
    num_envs: int = 1,
    device: str = "cpu",
    seed: int = 0,
    video: Mapping[str, Any] | None = None,
) -> Any:
    """An environment on its engine (a BaseEnv).

    Args:
        env_config: a YAML file or its content; a run's or model's folder brings the engine as well. One's own class is
            named in it: ``{"env_name": "my_env:MyEnv", ...}``.
        engine_config: a YAML file or its content; None is what env_config brings, else the shipped MuJoCo engine.
        num_envs: environments side by side. device: cpu or cuda:N. seed: of everything random in it.
        video: fields of VideoConfig, the --video_* flags; ``{"enabled": True, "out_dir": "clips"}`` films TEST mode.

    Raises:
        ConfigError: a file, key or value that can't be used.
    """
    from mimickit.engines.engine import Engine
    from mimickit.envs.base_env import BaseEnv
    from mimickit.video.config import VideoConfig

    env_values, env_source, brought = _env_block(env_config)
    over = env_values.pop("engine", None) or {}
    if engine_config is None and brought is not None:
        engine_values, engine_source = brought
    else:
        engine_values, engine_source = _block(DEFAULT_ENGINE if engine_config is None else engine_config, "engine")
    engine_values = merge(engine_values, over)
    block = engine_values.pop("video", None) or {}
    film = VideoConfig.from_mapping(block, f"{engine_source}: video").updated(video or {}, "video")
    shared = {"num_envs": num_envs, "device": device, "seed": seed}
    engine = make_part(
        Kind.ENGINE, engine_values.get("engine_name", "mujoco"), f"{engine_source}: engine_name", Engine, engine_values,
        video=film, config_source=engine_source, **shared,
    )  # fmt: skip
    if "env_name" not in env_values:
        raise ConfigError(f"{env_source}: env_name is missing: expected a name or package.module:Class")
    return make_part(
        Kind.ENV, env_values["env_name"], f"{env_source}: env_name", BaseEnv, find_files(env_values, env_source),
        engine, config_source=env_source, **shared,
    )  # fmt: skip


def load_agent(model: str | Path, env: Any) -> Any:
    """The agent (a BaseAgent) of a trained model, ready to act in env.

    Args:
        model: a model file, beside which lies the config.yaml that it was trained with, or the folder of both.
        env: a BaseEnv with the observations and actions that it was trained on.

    Raises:
        ConfigError: a file that isn't there or holds no agent. ModelFileError: a model that can't be read or doesn't
            fit.
    """
    from mimickit.learning.base_agent import BaseAgent

    path = find_path(model, "model")
    file = path / MODEL_FILE if path.is_dir() else path
    config = find_path(file.parent / CONFIG_FILE, f"the configuration of {file}")
    values = load_yaml(config).get("agent")
    if not isinstance(values, Mapping):
        raise ConfigError(f"{config}: agent: expected a block of keys, found {values!r}")
    agent = make_part(
        Kind.AGENT, values.get("agent_name", "PPO"), f"{config}: agent: agent_name", BaseAgent,
        find_files(values, str(config)), env, device=env.device, config_source=f"{config}: agent",
    )  # fmt: skip
    agent.load(file)
    return agent


def _env_block(config: Config) -> tuple[dict[str, Any], str, tuple[dict[str, Any], str] | None]:
    """The environment's keys, their source, and the same of the engine where a run's folder brings it."""
    if isinstance(config, Mapping):
        return dict(config), "env config", None
    path = find_path(config, "env_config")
    if not path.is_dir() and path.name != CONFIG_FILE:
        return load_yaml(path), str(path), None
    file = path / CONFIG_FILE if path.is_dir() else path
    content = load_yaml(file, "env_config")
    for name in ("env", "engine"):
        if not isinstance(content.get(name), Mapping):
            raise ConfigError(f"{file}: {name}: expected a block of keys, found {content.get(name)!r}")
    return dict(content["env"]), f"{file} (env)", (dict(content["engine"]), f"{file} (engine)")


def _block(config: Config, name: str) -> tuple[dict[str, Any], str]:
    if isinstance(config, Mapping):
        return dict(config), f"{name} config"
    path = find_path(config, f"{name}_config")
    return load_yaml(path), str(path)


# ---------------------------------------------------------------------- parts


def make_part(kind: Kind, name: Any, source: str, base: type, /, *args: Any, **options: Any) -> Any:
    """An instance of the class behind a name.

    Args:
        kind, name: as in the registry. source: named in errors. base: what the class must be derived from.
        args, options: what it is made from.

    Raises:
        ConfigError: no such class, or one that is no base, lacks methods, or can't be made from args and options.
    """
    if not isinstance(name, str):
        raise ConfigError(f"{source}: expected a name or package.module:Class, found {name!r}")
    cls, place = registry.resolve(kind, name, source), f"{source}: {name!r}"
    if not (isinstance(cls, type) and issubclass(cls, base)):
        found = f"the class {cls.__name__}" if isinstance(cls, type) else type(cls).__name__
        raise ConfigError(f"{place}: expected a subclass of {base.__module__}:{base.__name__}, found {found}")
    lacking = ", ".join(sorted(getattr(cls, "__abstractmethods__", ())))
    if lacking:
        raise ConfigError(f"{place}: expected a complete class, it lacks {lacking}")
    try:
        inspect.signature(cls).bind(*args, **options)
    except TypeError as err:
        raise ConfigError(f"{place}: {cls.__name__}.__init__ doesn't take what it is given: {err}") from None
    return cls(*args, **options)


def find_files(config: Mapping[str, Any], source: str) -> dict[str, Any]:
    """A copy of a configuration in which file, char_file and motion_file, at any depth, are paths of existing files.

    robot:NAME is the path of that robot's description.
    """
    found: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            found[key] = find_files(value, f"{source}: {key}")
        elif isinstance(value, list):
            found[key] = [find_files(v, f"{source}: {key}") if isinstance(v, Mapping) else v for v in value]
        elif isinstance(value, str) and key in FILE_KEYS:
            found[key] = _find_file(value, f"{source}: {key}")
        else:
            found[key] = value
    return found


def _find_file(name: str, what: str) -> str:
    if not name.startswith("robot:"):
        return str(find_path(name, what))
    from mimickit.anim.description import find_robot

    try:
        return str(find_robot(name))
    except ConfigError as err:
        raise ConfigError(f"{what}: {err}") from None
