"""Names in configurations -> classes, imported only when they are asked for.

A built-in name is in the tables below; ``package.module:Name`` names anybody's own, so that an engine,
environment, agent or logger of a third party needs no edit here.
"""

import enum
from typing import Any

from mimickit.util.keys import ConfigError, nearest
from mimickit.util.loading import load_object


class Kind(enum.Enum):
    """What can be named."""

    ENGINE = "engine"
    ENV = "env"
    AGENT = "agent"
    LOGGER = "logger"
    CALLBACK = "callback"


BUILT_IN: dict[Kind, dict[str, str]] = {
    Kind.ENGINE: {
        "mujoco": "mimickit.engines.mujoco_engine:MujocoEngine",
        "newton": "mimickit.engines.newton_engine:NewtonEngine",
        "isaac_lab": "mimickit.engines.isaac_lab_engine:IsaacLabEngine",
    },
    Kind.ENV: {
        "deepmimic": "mimickit.envs.deepmimic_env:DeepMimicEnv",
        "view_motion": "mimickit.envs.view_motion_env:ViewMotionEnv",
        "char_dof_test": "mimickit.envs.char_dof_test_env:CharDofTestEnv",
        "char_stand_test": "mimickit.envs.char_stand_test_env:CharStandTestEnv",
    },
    Kind.AGENT: {
        "PPO": "mimickit.learning.ppo_agent:PPOAgent",
    },
    Kind.LOGGER: {
        "txt": "mimickit.loggers.text_logger:TextLogger",
        "tb": "mimickit.loggers.tensorboard_logger:TensorBoardLogger",
        "wandb": "mimickit.loggers.wandb_logger:WandbLogger",
    },
    Kind.CALLBACK: {
        "picked_clips": "mimickit.media.ready:PickedClips",
        "motion_clips": "mimickit.media.ready:MotionClips",
        "error_plots": "mimickit.media.ready:ErrorPlots",
        "early_stop": "mimickit.media.ready:EarlyStop",
        "best_model": "mimickit.media.ready:BestModel",
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
