"""Adapters to other libraries. Importing this registers the ids of the shipped environments with Gymnasium.

    gymnasium.make("mimickit/HumanoidWalk-v0"), gymnasium.make_vec("mimickit/HumanoidWalk-v0", num_envs=16)

``mimickit/Env-v0`` takes any env_config; mimickit.interop.gymnasium_env says what else can be given. Each library is
imported only by the module that adapts to it: gymnasium_env, sb3 (Stable-Baselines3), rllib.
"""

import gymnasium

_TASKS = ("walk", "run", "cartwheel", "backflip", "spinkick")
_MODULE = "mimickit.interop.gymnasium_env"
IDS = ("mimickit/Env-v0", *(f"mimickit/Humanoid{task.capitalize()}-v0" for task in _TASKS))


def _register() -> None:
    files = (None, *(f"data/envs/deepmimic_humanoid_{task}_env.yaml" for task in _TASKS))
    for env_id, file in zip(IDS, files, strict=True):
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id, entry_point=f"{_MODULE}:make_single", vector_entry_point=f"{_MODULE}:make_vector",
                kwargs={"env_config": file} if file else {},
            )  # fmt: skip


_register()
