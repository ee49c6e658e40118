"""Names in configurations -> classes, imported only when they are asked for.

A built-in name is in the tables below; ``package.module:Name`` names anybody's own, so that an engine,
environment, agent or logger of a third party needs no edit here.
"""

import enum
import importlib
import sys
from typing import Any

from mimickit.util.keys import ConfigError, nearest


class Kind(enum.Enum):
    """What can be named."""

    ENGINE = "engine"
    ENV = "env"
    AGENT = "agent"
    LOGGER = "logger"


BUILT_IN: dict[Kind, dict[str, str]] = {
    Kind.ENGINE: {
        "mujoco": "mimickit.engines.mujoco_engine:MujocoEngine",
    },
    Kind.ENV: {
        "deepmimic": "mimickit.envs.deepmimic_env:DeepMimicEnv",
        "view_motion": "mimickit.envs.view_motion_env:ViewMotionEnv",
        "char_dof_test": "mimickit.envs.char_dof_test_env:CharDofTestEnv",
    },
    Kind.AGENT: {
        "PPO": "mimickit.learning.ppo_agent:PPOAgent",
    },
    Kind.LOGGER: {
        "txt": "mimickit.loggers.text_logger:TextLogger",
        "tb": "mimickit.loggers.tensorboard_logger:TensorBoardLogger",
        "wandb": "mimickit.loggers.wandb_logger:WandbLogger",
    },
}


def resolve(kind: Kind, name: str, source: str = "config") -> Any:
    """The class behind a built-in name or ``package.module:Name``.

    Args:
        kind: what is looked up. name: as in the configuration. source: named in errors, e.g. YAML file and
        key.

    Raises:
        ConfigError: unknown name (with the nearest known one), or a module or class that isn't there.
    """
    table = BUILT_IN[kind]
    if name in table:
        return load_object(table[name], source)
    if ":" not in name:
        raise ConfigError(
            f"{source}: unknown {kind.value} {name!r}{nearest(name, table)} (your own: package.module:Class)"
        )
    return load_object(name, source)


def load_object(path: str, source: str = "config") -> Any:
    """The object named by ``package.module:Name``; modules in the working directory are found too.

    Raises:
        ConfigError: no such module, or no such name in it. An error inside the module itself goes through.
    """
    module_name, _, attribute = path.partition(":")
    if "" not in sys.path:  # the working directory, which only python -m puts there
        sys.path.append("")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as err:
        if err.name is None or not (module_name == err.name or module_name.startswith(f"{err.name}.")):
            raise  # something that the module itself imports is missing: its own error says what
        raise ConfigError(f"{source}: {path!r}: no module named {err.name!r}") from None
    found = module
    for part in attribute.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise ConfigError(f"{source}: {path!r}: module {module_name!r} has no {attribute!r}") from None
    return found
