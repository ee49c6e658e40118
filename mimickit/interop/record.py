"""One call that films any policy in any environment, and leaves both as they were."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.envs.base_env import BaseEnv
from mimickit.envs.sim_env import SimEnv
from mimickit.interop.film_logs import log_clip
from mimickit.interop.layers import bare, layers_of, our_envs, undisturbed
from mimickit.interop.players import OurPlayer, Player, play, player_of
from mimickit.interop.policies import Actor, actor_of
from mimickit.interop.render_film import RenderFilm
from mimickit.util.files import file_name
from mimickit.util.keys import ConfigError, as_bool, as_int, reject_unknown
from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.files.names import suffix_of

LOG = logging.getLogger("mimickit.interop")
_NOT_HERE = ("enabled", "out_dir", "every", "final", "train_every", "keep_last", "keep_best", "pick", "defer", "strict")
_OF_RENDERING = ("env", "envs", "fps", "format", "codec", "hardware", "quality", "max_seconds")
_ALWAYS = {"pick": (), "defer": False, "keep_last": None, "keep_best": False, "strict": True}
_MAX_STEPS = 1000  # of an environment of another library that never ends


@dataclass(frozen=True)
class _Options:
    """What video_kwargs may hold besides fields of VideoConfig."""

    name: str | None = None  # of the file; default: the motion's or environment's, and the step
    key: str = "policy_video"  # in the logger
    num_episodes: int = 1  # in every environment that is filmed
    max_steps: int | None = None
    deterministic: bool = True  # whether predict() is asked for the mean action
    step: int | None = None  # samples or timesteps of the policy; default: what it says

    @classmethod
    def read(cls, values: Mapping[str, Any], policy: Any) -> "_Options":
        source = "video_kwargs"
        given = {key: value for key, value in values.items() if value is not None}
        for key in ("num_episodes", "max_steps", "step"):
            if key in given:
                given[key] = as_int(given[key], key, source)
                if given[key] < (key != "step"):
                    raise ConfigError(f"{source}: {key}: expected {int(key != 'step')} or more, found {given[key]}")
        if "deterministic" in given:
            given["deterministic"] = as_bool(given["deterministic"], "deterministic", source)
        for key in ("name", "key"):
            if not isinstance(given.get(key, ""), str):
                raise ConfigError(f"{source}: {key}: expected a name, found {given[key]!r}")
        if "name" in given and (given["name"] != file_name(given["name"]) or given["name"].startswith(".")):
            raise ConfigError(f"{source}: name: expected a file's name without its folder, found {given['name']!r}")
        options = cls(**given)
        return options if options.step is not None else replace(options, step=_step_of(policy))


def _step_of(policy: Any) -> int:
    """How long a policy has been trained, as far as it says."""
    for name in ("num_timesteps", "samples"):
        value = getattr(policy, name, None)
        if isinstance(value, int):
            return value
    return 0


def record_and_save_video(
    output_dir: str | Path,
    policy: Any,
    eval_venv: Any,
    video_kwargs: Mapping[str, Any] | None = None,
    logger: Any = None,
) -> Clip:
    """Film a policy in an environment: whole episodes, from a reset to their ends.

    An environment of MimicKit, wrapped in whatever way, is filmed by its engine, in TEST mode; any other by its
    render(). eval_venv may be the environment of a training under way: afterwards it, the statistics of its
    normalisers, the policy and all random states are as before, so that training goes on as if nothing had been filmed.

    Args:
        output_dir: folder of the clip, made if it isn't there.
        policy: an agent of MimicKit, the path of a model or its folder, a Stable-Baselines3 policy or algorithm
            (anything with predict()), or a callable obs -> action.
        eval_venv: an environment of MimicKit, a VecEnv of Stable-Baselines3, a VectorEnv or Env of Gymnasium, with
            render_mode rgb_array where it isn't MimicKit's.
        video_kwargs: fields of VideoConfig (the --video_* flags: camera, width, envs, max_seconds, ...; of other
            environments env, envs, fps, format, codec, hardware, quality, max_seconds); and name of the file, key in
            the logger, num_episodes, max_steps, deterministic, step (which the clip is logged at).
        logger: a Logger of MimicKit, a logger of Stable-Baselines3 (or imitation), or None.

    Returns:
        the (first) clip.

    Raises:
        ConfigError: a policy, environment, logger or key that can't be used. VideoError: filming failed. What the
            policy or environment raises goes through; what had been filmed by then is a finished clip.
    """
    values = dict(video_kwargs or {})
    own = [field.name for field in fields(_Options)]
    filming = {key: value for key, value in values.items() if key not in own}
    options = _Options.read({key: value for key, value in values.items() if key in own}, policy)
    env = OurPlayer(bare(eval_venv)) if isinstance(eval_venv, BaseEnv) else eval_venv
    player = player_of(env)
    layers = layers_of(env)
    sims = our_envs(layers)
    film = _film_of(Path(output_dir), player, sims, filming, options)
    actor = actor_of(policy, sims[0] if sims else None, _raw_obs(layers), deterministic=options.deterministic)
    for sim in sims:
        if isinstance(sim, SimEnv):
            sim.end_training_film()
    with undisturbed(layers, policy):
        clip = film(actor)
    log_clip(logger, options.key, clip, options.step or 0)
    return clip


def _raw_obs(layers: Sequence[Any]) -> Callable[[], NDArray[np.float32]]:
    """The last observations of our environments, whatever wrappers make of them."""
    return lambda: np.concatenate([layer.numpy_env.obs for layer in layers if "numpy_env" in vars(layer)])


def _film_of(
    folder: Path, player: Player, sims: Sequence[BaseEnv], values: Mapping[str, Any], options: _Options
) -> Callable[[Actor], Clip]:
    """What films: our engine where the environments are ours, else render()."""
    own = [field.name for field in fields(_Options)]
    if any(not isinstance(sim, SimEnv) for sim in sims) or not sims:
        reject_unknown(values, (*_OF_RENDERING, *own), "video_kwargs")
        config = VideoConfig.from_mapping(values, "video_kwargs")
        _check_envs(config, player.num_envs)
        return lambda actor: _film_rendered(folder, player, actor, config, options)
    known = [field.name for field in fields(VideoConfig) if field.name not in _NOT_HERE]
    reject_unknown(values, (*known, *own), "video_kwargs")
    if len(sims) == 1:
        sim, first = sims[0], 0
    else:  # single environments side by side, each with its engine: one of them is filmed
        first = VideoConfig.from_mapping(values, "video_kwargs").env
        if first >= len(sims) or values.get("envs"):
            raise ConfigError(f"video_kwargs: env: expected one below {len(sims)}, found {values.get('envs', first)}")
        sim, values = sims[first], {**values, "env": 0}
    assert isinstance(sim, SimEnv)
    config = sim.engine.get_video_config().updated({**values, **_ALWAYS}, "video_kwargs")
    _check_envs(config, sim.num_envs)
    return lambda actor: _film_simulated(folder, player, actor, sim, {**values, **_ALWAYS}, options, first)


def _named(name: str, config: VideoConfig) -> str:
    """A clip's file name, with the ending of its format, which may be there already."""
    suffix = suffix_of(config.format)
    return name if suffix and name.endswith(suffix) else f"{name}{suffix}"


def _check_envs(config: VideoConfig, num_envs: int) -> None:
    if max(config.env_ids) >= num_envs:
        raise ConfigError(f"video_kwargs: env: expected less than {num_envs}, found {max(config.env_ids)}")


def _film_simulated(
    folder: Path,
    player: Player,
    actor: Actor,
    sim: SimEnv,
    values: Mapping[str, Any],
    options: _Options,
    first: int,
) -> Clip:
    """By the engine's own recorder. first: number of sim's first environment among the player's."""
    config = sim.engine.get_video_config().updated(values, "video_kwargs")
    shown = [first + env for env in config.env_ids]
    sim.training_samples = options.step or 0  # the clip is named after it
    path = folder if options.name is None else folder / _named(options.name, config)
    try:
        with sim.filming(path, **values):
            for _ in play(player, actor, shown, num_episodes=options.num_episodes, max_steps=options.max_steps):
                pass
    except BaseException:
        for partial in sim.engine.get_video_recordings():
            LOG.warning("what had been filmed by then is in %s", partial.path)
        raise
    clip = sim.engine.get_video_recording()
    if clip is None:
        raise VideoError(f"{folder}: nothing was filmed")
    return clip


def _film_rendered(folder: Path, player: Player, actor: Actor, config: VideoConfig, options: _Options) -> Clip:
    """By the pictures that render() gives."""
    name = _named(options.name or f"policy_{options.step or 0:012d}", config)
    film = RenderFilm(folder / name, player, config)
    steps = _MAX_STEPS if options.max_steps is None else options.max_steps
    try:
        for played in play(player, actor, config.env_ids, num_episodes=options.num_episodes, max_steps=steps):
            if not film.is_full:
                film.add(played)
    except BaseException:
        partial = film.finish(options.step)
        if partial is not None:
            LOG.warning("what had been filmed by then is in %s", partial.path)
        raise
    finished = film.finish(options.step)
    if finished is None:
        raise VideoError(f"{folder}: nothing was filmed")
    return finished
