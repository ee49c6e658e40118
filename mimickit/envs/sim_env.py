"""An environment on a physics engine, which films itself while the environment is in TEST mode."""

import abc
import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import gymnasium
import numpy as np
import torch
from torch import Tensor

from mimickit.engines.engine import Engine
from mimickit.envs.base_env import OUTCOMES, BaseEnv, DoneFlags, EnvMode
from mimickit.envs.film_schedule import FilmSchedule
from mimickit.media.types import HTML, Media
from mimickit.util.keys import ConfigError, as_float, reject_unknown
from mimickit.video.clip import Clip
from mimickit.video.errors import VideoError
from mimickit.video.pages.run_index import write_index
from mimickit.video.still_camera import StillCamera

_log = logging.getLogger("mimickit.envs")


class SimEnv(BaseEnv):
    """Builds its scene in an engine, steps it, and keeps the account of episodes.

    A subclass says what stands in an environment (_build_env), what an action does (_apply_action), how an episode
    begins (_reset_envs), what is observed, rewarded and how it ends.
    """

    KEYS: ClassVar[tuple[str, ...]] = ("env_name", "episode_length", "camera_mode")

    def __init__(
        self,
        config: Mapping[str, Any],
        engine: Engine,
        *,
        num_envs: int,
        device: str = "cpu",
        seed: int = 0,
        config_source: str = "env config",
    ) -> None:
        super().__init__(num_envs=num_envs, device=device, seed=seed)
        reject_unknown(config, self.KEYS, config_source)
        self._config = dict(config)
        self._source = config_source
        self._engine = engine
        self._seed = seed
        self._dt = engine.get_timestep()
        self.control_freq = 1.0 / self._dt
        episode_length = as_float(config.get("episode_length", 10.0), "episode_length", config_source)
        self.max_episode_steps = round(episode_length / self._dt)
        if self.max_episode_steps < 1:
            raise ConfigError(f"{config_source}: episode_length: expected at least {self._dt:g} s (one control step)")
        self._steps = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._returns = torch.zeros(num_envs, device=device)
        self._episodes = torch.zeros(num_envs, dtype=torch.int64, device=device)
        self._media: dict[str, list[Media]] = {}
        self._schedule = FilmSchedule(engine.get_video_config())
        self._film_overrides: dict[str, Any] = {}
        self._is_filming = False
        self._films_training = False
        self._stills: StillCamera | None = None
        self._told_of_bad_reward = False
        self._prepare()
        self._build()
        self.action_space = self._build_action_space()
        self._low = torch.from_numpy(self.action_space.low).to(device)
        self._high = torch.from_numpy(self.action_space.high).to(device)
        obs = self.reset()
        high = np.full(obs.shape[-1], np.inf, dtype=np.float32)
        self.obs_space = gymnasium.spaces.Box(-high, high, dtype=np.float32)

    def _prepare(self) -> None:
        """Read and check the configuration, before anything is built."""

    def _build(self) -> None:
        for _ in range(self.num_envs):
            self._build_env(self._engine.create_env())
        self._engine.initialize_sim()

    # ------------------------------------------------------------------ what a subclass says

    @abc.abstractmethod
    def _build_env(self, env_id: int) -> None:
        """Create the objects of one environment."""

    @abc.abstractmethod
    def _build_action_space(self) -> gymnasium.spaces.Box:
        """Bounds of an action of one environment."""

    @abc.abstractmethod
    def _apply_action(self, action: Tensor) -> None:
        """Turn (num_envs, A) into commands of the engine."""

    @abc.abstractmethod
    def _reset_envs(self, env_ids: Tensor) -> None:
        """Set the state in which new episodes begin."""

    def _after_step(self) -> None:
        """Bring up to date what observation, reward and done share; called after every step of the engine."""

    @abc.abstractmethod
    def _compute_obs(self, env_ids: Tensor | None) -> Tensor:
        """Observations (len(env_ids), O); all environments if None."""

    @abc.abstractmethod
    def _compute_reward(self) -> Tensor:
        """(num_envs,)."""

    @abc.abstractmethod
    def _compute_done(self) -> Tensor:
        """(num_envs,) int64 of DoneFlags; the end of episode_length need not be looked at."""

    def _film_ghost(self, env_id: int) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Poses of the reference in one environment for a film that shows it, one (pos, rot) an actor."""
        return None

    def _film_name(self) -> str:
        """What a clip is called."""
        return str(self._config.get("env_name", "film"))

    def _step_info(self) -> dict[str, Tensor]:
        """What step() tells besides sim_failed, (num_envs, ...) each."""
        return {}

    def _film_context(self) -> dict[str, Any]:
        """What a film's overlays and side file need to know of the task: key_bodies (names), ..."""
        return {}

    # ------------------------------------------------------------------ episodes

    @property
    def engine(self) -> Engine:
        """What it is simulated and filmed by."""
        return self._engine

    def reset(self, env_ids: Tensor | None = None) -> Tensor:
        ids = torch.arange(self.num_envs, device=self.device) if env_ids is None else env_ids
        if len(ids):
            self._steps[ids] = 0
            self._returns[ids] = 0.0
            self._film_training(ids)
            self._reset_envs(ids)
            if env_ids is None or len(ids) == self.num_envs:
                self._obs = self._compute_obs(None)
            else:
                self._obs[ids] = self._compute_obs(ids)
            self._film_episode_begin(ids)
        return self._obs.clone()

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        self._apply_action(action)
        self._engine.step()
        self._steps += 1
        self._after_step()
        reward, done = self._checked_reward(), self._compute_done()
        done = torch.where((done == DoneFlags.NULL) & (self._steps >= self.max_episode_steps), DoneFlags.TIME, done)
        failed = self._engine.get_sim_failed()
        if failed.any():
            done = torch.where(failed, DoneFlags.FAIL, done)
            reward = torch.where(failed, 0.0, reward)
        self._returns += reward
        self._obs = self._compute_obs(None)
        self._film_step(reward, done)
        self._episodes += done != DoneFlags.NULL
        return self._obs.clone(), reward, done, {"sim_failed": failed, **self._step_info()}

    def _checked_reward(self) -> Tensor:
        """The reward; one that is not a number is reported once and counts nothing."""
        reward, name = self._compute_reward(), type(self).__name__
        if tuple(reward.shape) != (self.num_envs,):
            raise ValueError(f"{name}._compute_reward: expected shape ({self.num_envs},), found {tuple(reward.shape)}")
        bad = ~torch.isfinite(reward)
        if bad.any():
            sound = ~self._engine.get_sim_failed()
            if not self._told_of_bad_reward and bool((bad & sound).any()):
                self._told_of_bad_reward = True
                _log.warning("%s._compute_reward gave %d values that are not numbers; they count as 0",
                             name, int((bad & sound).sum()))  # fmt: skip
            reward = torch.where(bad, 0.0, reward)
        return reward

    def seed(self, seed: int) -> None:
        super().seed(seed)
        self._seed = seed

    # ------------------------------------------------------------------ filming

    def set_training_progress(self, samples: int) -> None:
        super().set_training_progress(samples)
        self._schedule.see_progress(samples)

    def set_mode(self, mode: EnvMode) -> None:
        if mode is not self.mode and (self.mode is EnvMode.TEST or self._films_training):
            self._stop_filming()
        entering = mode is EnvMode.TEST and self.mode is not EnvMode.TEST
        super().set_mode(mode)
        is_filmable = entering and self._engine.enabled_record_video() and not self._is_filming
        if is_filmable and self._schedule.takes_test(is_last=self.training_ended):
            self._start_filming()

    def _film_options(self) -> dict[str, Any]:
        """Fields of VideoConfig that this environment sets where the user has not."""
        if self._config.get("camera_mode") == "still" and self._engine.get_video_config().camera == "track":
            return {"camera": "still"}
        return {}

    def film_with(self, **options: Any) -> bool:
        if self._engine.enabled_record_video():
            self._film_overrides |= options
        return self._engine.enabled_record_video()

    @contextlib.contextmanager
    def filming(self, path: str | Path, **options: Any) -> Iterator[None]:
        """Within it the environment is in TEST mode and filmed, whatever the configuration says.

        The clips are the engine's get_video_recordings(), and in nobody's media.

        Args:
            path: a file, or a folder in which to name it. options: fields of VideoConfig.
        """
        before = self.mode
        self.start_film(path, **options)
        try:
            self.set_mode(EnvMode.TEST)
            yield
        finally:
            try:
                self.stop_film()
            finally:
                self.set_mode(before)

    def end_training_film(self) -> None:
        """Should an episode of training be filmed now, end that clip early."""
        if self._films_training:
            self._stop_filming()

    def start_film(self, path: str | Path | None = None, **options: Any) -> None:
        """Film the present episodes from here on, whatever the mode. path: a file or folder, None for the configured
        one. options: fields of VideoConfig.
        """
        self._start_filming(path, **options)
        if self._engine.is_recording_video():
            self._film_episode_begin(torch.tensor(self._engine.get_video_recorder().env_ids))

    def stop_film(self) -> list[Clip]:
        """End the film that start_film() began; its clips, none if filming failed."""
        self._is_filming = False
        self._engine.stop_video_recording()
        return self._engine.get_video_recordings()

    def _start_filming(self, path: str | Path | None = None, **options: Any) -> None:
        recorder = self._engine.get_video_recorder()
        name = self._film_name() + ("_train" if self._films_training else "")
        recorder.set_context(name=name, samples=self.training_samples, seed=self._seed, **self._film_context())
        overrides = self._film_overrides if path is None else {}  # which are for tests
        options = self._film_options() | overrides | options
        self._engine.start_video_recording(path, **options)
        self._is_filming = True
        shows_reference = self._engine.get_video_config().updated(options, "video").shows_reference
        if shows_reference and type(self)._film_ghost is SimEnv._film_ghost:
            _log.warning("%s has no reference motion: the film shows no ghost", type(self).__name__)

    def _stop_filming(self) -> None:
        if self._is_filming:  # not every test is
            self._engine.stop_video_recording()
            name = "train_video" if self._films_training else "test_video"
            self._is_filming = self._films_training = False
            self._add_media(self._engine.get_video_recordings(), name)

    def _add_media(self, clips: Sequence[Clip], name: str = "test_video") -> None:
        for clip in clips:
            pick = clip.context.get("pick")
            suffix = f"_{pick}" if pick else ""
            self._media.setdefault(f"{name}{suffix}", []).append(clip.to_media())
        for replay in dict.fromkeys(clip.replay for clip in clips if clip.replay is not None):
            self._media.setdefault("test_replay", []).append(HTML(path=replay, caption=replay.stem))
        folder = self._engine.get_video_config().out_dir
        if clips and folder is not None:
            try:
                write_index(folder)
            except VideoError as error:  # the clips are there all the same
                _log.warning("the page of clips: %s", error)

    def _film_episode_begin(self, env_ids: Tensor) -> None:
        if not self._engine.is_recording_video():
            return
        recorder, begun = self._engine.get_video_recorder(), set(env_ids.tolist())
        for env_id in recorder.env_ids:
            if env_id in begun:
                facts = {"episode": int(self._episodes[env_id]), **self.episode_facts(env_id)}
                recorder.begin_episode(facts, env_id=env_id)
                self._film_show_ghost(env_id)

    def _film_step(self, reward: Tensor, done: Tensor) -> None:
        if not self._engine.is_recording_video():
            return
        recorder = self._engine.get_video_recorder()
        # read through numpy, which for single numbers is several times quicker
        steps_of, returns, episodes, rewards, flags = (
            values.cpu().numpy() for values in (self._steps, self._returns, self._episodes, reward, done)
        )
        for env_id in recorder.env_ids:
            steps, total = int(steps_of[env_id]), float(returns[env_id])
            recorder.annotate(
                env_id=env_id, episode=int(episodes[env_id]), episode_time=steps * self._dt, episode_return=total,
                reward=float(rewards[env_id]),
            )  # fmt: skip
            self._film_show_ghost(env_id)
            flag = DoneFlags(int(flags[env_id]))
            if flag is not DoneFlags.NULL:
                recorder.end_episode(length=steps, episode_return=total, outcome=OUTCOMES[flag], env_id=env_id)
        if self._films_training and flags[recorder.env_id] != DoneFlags.NULL:
            self._stop_filming()

    def _film_training(self, env_ids: Tensor) -> None:
        """Begin to film an episode of training, if one of those begins that are to be filmed."""
        engine = self._engine
        if self.mode is EnvMode.TEST or self._is_filming or not engine.enabled_record_video():
            return
        first = engine.get_video_config().env_ids[0]
        if bool((env_ids == first).any()) and self._schedule.takes_episode():
            self._films_training = True
            self._start_filming(pick=())

    def _film_show_ghost(self, env_id: int) -> None:
        recorder = self._engine.get_video_recorder()
        if recorder.wants_ghost:
            ghost = self._film_ghost(env_id)
            if ghost is not None:
                recorder.set_ghost(ghost, env_id=env_id)

    def render(self, env_ids: Sequence[int] | None = None) -> list[np.ndarray]:
        if self._stills is None:
            self._stills = self._engine.get_video_recorder().still_camera()
        ids = list(range(self.num_envs)) if env_ids is None else list(env_ids)
        times = [self._engine.get_sim_time(env_id) for env_id in ids]
        ghosts = {env_id: ghost for env_id in ids if (ghost := self._film_ghost(env_id)) is not None}
        facts = {
            env_id: {
                "episode": int(self._episodes[env_id]),
                "episode_time": int(self._steps[env_id]) * self._dt,
                "episode_return": float(self._returns[env_id]),
            }
            for env_id in ids
        }
        config = self._engine.get_video_config().updated(self._film_options(), "pictures")
        return self._stills.shoot(config, ids, times, ghosts=ghosts, facts=facts)

    def pop_media(self, *, wait: bool = False) -> dict[str, list[Media]]:
        if self._engine.enabled_record_video():
            self._add_media(self._engine.get_video_recorder().pop_deferred(wait=wait))
        media, self._media = self._media, {}
        return media

    # ------------------------------------------------------------------ life

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "engine": self._engine.get_state(),
            "steps": self._steps.clone(),
            "returns": self._returns.clone(),
            "episodes": self._episodes.clone(),
            "obs": self._obs.clone(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._engine.set_state(state["engine"])
        self._steps.copy_(state["steps"])
        self._returns.copy_(state["returns"])
        self._episodes.copy_(state["episodes"])
        self._obs.copy_(state["obs"])

    def close(self) -> None:
        if self.mode is EnvMode.TEST:
            self.set_mode(EnvMode.TRAIN)
        if self._engine.enabled_record_video():
            self._add_media(self._engine.get_video_recorder().pop_deferred(wait=True))
        if self._stills is not None:
            self._stills.close()
        self._engine.close()
