"""RLlib (Ray's new API stack): our environments registered, and a callback that brings our clips into its results."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from mimickit.envs.sim_env import SimEnv
from mimickit.interop.gymnasium_env import make_single, make_vector
from mimickit.interop.layers import layers_of
from mimickit.media.types import Video
from mimickit.util.keys import ConfigError
from mimickit.video.clip import Clip

try:
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.tune.registry import register_env
except ImportError:
    raise ImportError('mimickit.interop.rllib needs RLlib: pip install "ray[rllib]"') from None

ENV_NAME = "mimickit"
MEDIA_KEY = "episode_media"  # in the results of training and of evaluation: name -> list of media
VIDEO_KEY = "episode_video"
_SAMPLES = "mimickit_samples"  # of a runner: how far training has come
_FILMED_ENV = 0  # of each env runner
_ALWAYS = {"env": _FILMED_ENV, "envs": (), "pick": (), "defer": False, "keep_last": None, "keep_best": False}


def register() -> None:
    """Make ``.environment("mimickit", env_config={...})`` known; env_config holds arguments of make_single().

    With ``.env_runners(gym_env_vectorize_mode="vector_entry_point")`` the environments of an env runner share one
    simulation.
    """
    register_env(ENV_NAME, _create)


def _create(context: Mapping[str, Any]) -> gymnasium.Env | gymnasium.vector.VectorEnv:
    options = dict(context)
    options["seed"] = int(options.get("seed", 0)) + 1000 * int(getattr(context, "worker_index", 0))
    if "num_envs" in options:
        return make_vector(autoreset="next_step", **options)  # what RLlib counts on
    return make_single(**options)


class EpisodeClips(RLlibCallback):  # type: ignore[misc]
    """Films whole episodes on env runners; the clips are in result["episode_media"]["episode_video"] of the training
    iteration in which they end, and in result["evaluation"]["episode_media"] likewise.

    Give RLlib a function that makes it: ``.callbacks(functools.partial(EpisodeClips, "clips"))``.
    """

    def __init__(
        self,
        out_dir: str | Path,
        *,
        video: Mapping[str, Any] | None = None,
        every: int = 1,
        env_runners: Sequence[int] | None = None,
        as_wandb: bool = False,
    ) -> None:
        """Args:
        out_dir: folder of the clips, which the driver must see too. video: fields of VideoConfig.
        every: one episode in so many rounds of sampling. env_runners: indices of those that film; None: all.
        as_wandb: put wandb.Video into the results, which Ray's WandbLoggerCallback logs; else Video of MimicKit.
        """
        super().__init__()
        if every < 1:
            raise ConfigError(f"EpisodeClips: every: expected 1 or more, found {every}")
        self._out_dir = Path(out_dir).resolve()
        self._video = {**(video or {}), **_ALWAYS}
        self._every = every
        self._env_runners = env_runners
        self._as_wandb = as_wandb
        self._rounds = 0
        self._is_due = True
        self._is_filming = False

    # ------------------------------------------------------------------ on an env runner

    def on_episode_start(self, *, env_runner: Any, env: Any, env_index: int, **kwargs: Any) -> None:
        """Begin to film, if it is time for it."""
        films = self._env_runners is None or env_runner.worker_index in self._env_runners
        if env_index != _FILMED_ENV or not (films and self._is_due):
            return
        if self._is_filming:  # an episode that was broken off
            _sim_of(env).stop_film()
        phase = "evaluation" if env_runner.config.in_evaluation else "train"
        sim = _sim_of(env)
        own = getattr(env_runner, "num_env_steps_sampled_lifetime", 0)
        sim.training_samples = int(getattr(env_runner, _SAMPLES, own))
        sim.start_film(self._out_dir / phase / f"env_runner_{env_runner.worker_index}", **self._video)
        self._is_filming = True

    def on_episode_end(self, *, metrics_logger: Any, env: Any, env_index: int, **kwargs: Any) -> None:
        """End the clip, and hand its path to the driver."""
        if env_index == _FILMED_ENV:
            self._deliver(env, metrics_logger)

    def on_sample_end(self, *, env_runner: Any, metrics_logger: Any, **kwargs: Any) -> None:
        """Count rounds; an evaluation ends the episodes that are under way, and so their clips."""
        if env_runner.config.in_evaluation:
            self._deliver(env_runner.env, metrics_logger)
        self._rounds += 1
        self._is_due |= self._rounds % self._every == 0

    def _deliver(self, env: Any, metrics_logger: Any) -> None:
        """End the clip, if there is one, and hand the path of its side file to the driver."""
        if self._is_filming:
            self._is_filming, self._is_due = False, False
            for clip in _sim_of(env).stop_film():
                metrics_logger.log_value((MEDIA_KEY, VIDEO_KEY), str(clip.side_file), reduce="item_series")

    # ------------------------------------------------------------------ on the driver

    def on_train_result(self, *, result: dict[str, Any], **kwargs: Any) -> None:
        """Bring the clips of an iteration into its result."""
        self._collect(result)

    def on_evaluate_start(self, *, algorithm: Any, **kwargs: Any) -> None:
        """Tell the runners that evaluate how far training has come."""
        samples = algorithm.metrics.peek(("env_runners", "num_env_steps_sampled_lifetime"), default=0)
        group = algorithm.eval_env_runner_group
        if group is not None:
            group.foreach_env_runner(lambda runner: setattr(runner, _SAMPLES, int(samples)))

    def on_evaluate_end(self, *, evaluation_metrics: dict[str, Any], **kwargs: Any) -> None:
        """Bring the clips of an evaluation into its result."""
        self._collect(evaluation_metrics)

    def _collect(self, result: dict[str, Any]) -> None:
        found = result.get("env_runners", {}).pop(MEDIA_KEY, {})
        if found:
            media = result.setdefault(MEDIA_KEY, {})
            for name, side_files in found.items():
                media[name] = [self._media(Clip.load(Path(file))) for file in side_files]

    def _media(self, clip: Clip) -> Any:
        media = clip.to_media()
        if not self._as_wandb or not isinstance(media, Video):
            return media
        import wandb

        return wandb.Video(str(media.path), caption=media.caption, format=media.path.suffix[1:])


def _sim_of(env: Any) -> SimEnv:
    """The environment of ours that holds an env runner's first one."""
    sims = [layer for layer in layers_of(env) if isinstance(layer, SimEnv)]
    if not sims:
        raise ConfigError("EpisodeClips: expected an environment of MimicKit: mimickit.interop.rllib.register()")
    return sims[0]


def policy_of(algorithm: Any, module_id: str = "default_policy") -> Callable[[Any], NDArray[np.float32]]:
    """What an algorithm has learnt, as a function for record_and_save_video(): its mean actions in the environment's
    units, of observations (N, O). Connectors of one's own between environment and module are left out.
    """
    from ray.rllib.utils.spaces.space_utils import unsquash_action

    module = algorithm.get_module(module_id)
    distribution, space = module.get_inference_action_dist_cls(), module.action_space

    @torch.no_grad()
    def act(obs: Any) -> NDArray[np.float32]:
        out = module.forward_inference({"obs": torch.as_tensor(np.asarray(obs, dtype=np.float32))})
        if "actions" in out:
            action = out["actions"]
        else:
            action = distribution.from_logits(out["action_dist_inputs"]).to_deterministic().sample()
        values: NDArray[np.float32] = action.cpu().numpy()
        if algorithm.config.normalize_actions:
            values = np.stack([unsquash_action(row, space) for row in values])
        return np.clip(values, space.low, space.high)

    return act
