"""What all agents share: the training loop, tests, model files and checkpoints."""

import abc
import logging
import math
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from mimickit.envs.base_env import BaseEnv, EnvMode
from mimickit.learning.agent_config import AgentConfig, plain
from mimickit.learning.checkpoint import (
    CHECKPOINT_FORMAT,
    MODEL_FORMAT,
    ModelFileError,
    get_part,
    load_file,
    load_module,
    save_file,
    try_save,
)
from mimickit.learning.episodes import EpisodeTracker
from mimickit.learning.interrupts import DeferredInterrupt
from mimickit.learning.observer import NoObserver, Observer
from mimickit.learning.progress import Progress
from mimickit.learning.training_run import TrainingRun
from mimickit.loggers.base import STEP_KEY, Logger, log_numbers
from mimickit.media.types import MEDIA_KEY, join_media

LOG = logging.getLogger("mimickit.learning")
MODEL_FILE, BEST_MODEL_FILE, CHECKPOINT_FILE = "model.pt", "model_best.pt", "checkpoint.pt"
INT_MODELS_DIR = "int_models"


class BaseAgent(abc.ABC):
    """Trains and tests a policy in an environment. A subclass says how a model is built, fed and improved."""

    CONFIG: ClassVar[type[AgentConfig]] = AgentConfig

    def __init__(
        self,
        config: Mapping[str, Any],
        env: BaseEnv,
        *,
        device: str = "cpu",
        seed: int = 0,
        config_source: str = "agent config",
    ) -> None:
        """Build the networks; with the same seed they begin the same.

        Args:
            config: the keys of CONFIG. env: what is learnt in. device: of networks and buffers. seed: of all that is
                random. config_source: named in errors, e.g. the YAML file.

        Raises:
            ConfigError: an unknown key, or a value that can't be.
        """
        self._config: Any = self.CONFIG.from_mapping(config, config_source)
        self._source = config_source
        self._env = env
        self._device = device
        self._generator = torch.Generator(device=device).manual_seed(seed)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self._model: Any = self._build_model().to(device)
        self.samples = 0  # taken in training so far
        self.iteration = 0
        self.wall_seconds = 0.0  # of training so far, tests and saving included
        self.interrupted: dict[str, Any] = {}  # what a training or test that Ctrl-C ended had found by then
        self.observer: Observer = NoObserver()
        self._stop_reason = ""
        self._untrained = True  # samples, if any, are those of a loaded model
        self._train_seconds = 0.0  # collecting and updating
        self._best_return = -math.inf
        self._episodes = EpisodeTracker(env.num_envs, device)
        self._obs: Tensor | None = None  # None: all environments are to be reset before the next step

    # ------------------------------------------------------------------ what a subclass says

    @abc.abstractmethod
    def _build_model(self) -> nn.Module:
        """The networks and normalisers: all that a model file holds."""

    @abc.abstractmethod
    def _collect(self, obs: Tensor) -> Tensor:
        """Take steps_per_iter steps in every environment; obs (N, O) are of the first; returns those after the last."""

    @abc.abstractmethod
    def _update(self, last_obs: Tensor) -> dict[str, float]:
        """Improve the model on what was collected up to last_obs (N, O); returns figures to log."""

    @abc.abstractmethod
    def _act(self, obs: Tensor) -> Tensor:
        """Deterministic actions (N, A) of observations (N, O), both in the environment's units."""

    @torch.no_grad()
    def act(self, obs: Tensor) -> Tensor:
        """Deterministic actions (N, A) of the policy that is tested and saved, of observations (N, O) as they are."""
        with self._published():
            return self._act(obs.to(self._device))

    def _published(self) -> AbstractContextManager[None]:
        """Within it the model is the one that training tests and saves, should that not be the one that learns."""
        return nullcontext()

    def _learner_state(self) -> dict[str, Any]:
        """What resuming needs besides the model, e.g. optimisers."""
        return {}

    def _load_learner_state(self, state: Mapping[str, Any]) -> None:
        """Take up the state of _learner_state()."""

    # ------------------------------------------------------------------ training

    def train(
        self,
        *,
        max_samples: int,
        out_dir: str | Path,
        logger: Logger,
        save_int_models: bool = False,
        resume: str | Path | None = None,
        progress: bool = True,
    ) -> dict[str, Any]:
        """Train until max_samples samples, those before a resume included, have been taken.

        Every iters_per_output iterations, and at the end, the policy is tested and out_dir gets model.pt,
        checkpoint.pt (all that resuming needs) and, if it is the best so far, model_best.pt. Ctrl-C lets the
        iteration end and saves. Where nothing is left to train the policy is tested once more, for the result.

        Args:
            logger: gets figures of every iteration, and of tests with their media. save_int_models: keep the
                model of every test in int_models/. resume: a run folder or its checkpoint.pt. progress: show
                a bar.

        Returns:
            the last test's result; samples, iterations, train_time_s, samples_per_s, best_return; stop_reason, if
            request_stop() was called; episode_media of the last iteration and test.
        """
        if resume is not None:
            self.load_checkpoint(resume)
        elif self._untrained:
            self.samples = 0
        self._untrained = False
        bar = Progress(max_samples, start=self.samples, enabled=progress)
        run = TrainingRun(Path(out_dir), logger, bar, save_int_models, time.perf_counter() - self.wall_seconds)
        self._stop_reason = ""
        self.observer.on_train_start()
        with bar:
            try:
                if self.samples >= max_samples:
                    self._finish(run, max_samples)
                while self.samples < max_samples and not self._stop_reason:
                    self._iterate(run)
                    self._output(run, last=self.samples >= max_samples or bool(self._stop_reason))
                    logger.write(self.samples)
            except KeyboardInterrupt:
                if run.saved_at != self.iteration and self.iteration:
                    self._save_run(run, must=False)
                self.interrupted = {**run.result, **self._run_facts()}
                raise
            except Exception:  # of somebody's callback or environment: what has been learnt by then is kept
                if run.saved_at != self.iteration and self.iteration and self._is_sound():
                    self._save_what_can_be(run)
                raise
        return run.result | self._run_facts() | {MEDIA_KEY: join_media(run.media, run.result.get(MEDIA_KEY, {}))}

    def _is_sound(self) -> bool:
        """Whether the model is one to keep: all of its numbers are numbers."""
        return all(bool(torch.isfinite(p).all()) for p in self._model.parameters())

    def request_stop(self, reason: str) -> None:
        """Let training end after the present iteration and its test."""
        self._stop_reason = reason

    def _finish(self, run: TrainingRun, max_samples: int) -> None:
        """What is left of a training that had been stopped at its very end: files, and the result of a test."""
        LOG.warning("nothing to train: %d of %d samples have been taken already; a test follows",
                    self.samples, max_samples)  # fmt: skip
        self._save_run(run, must=True)
        self._env.set_training_ended(True)
        self._test_in_training(run)
        self._keep_best(run)
        run.logger.write(self.samples)

    def _output(self, run: TrainingRun, *, last: bool) -> None:
        """Test and save, if it is time for it."""
        due = self.iteration % self._config.iters_per_output == 0
        self._env.set_training_ended(last)
        if last and not due:  # before a test that training would not have made here, were it to go on
            self._save_run(run, must=True)
        if last or due:
            self._test_in_training(run)
            self._keep_best(run)
            if run.save_int_models:
                path = run.out_dir / INT_MODELS_DIR / f"model_{self.samples:012d}.pt"
                self._save_model(path, must=last)
        if due:
            self._save_run(run, must=last)

    def _iterate(self, run: TrainingRun) -> None:
        """One iteration: collect, update, log. Ctrl-C takes effect at its end."""
        with DeferredInterrupt():
            start = time.perf_counter()
            self._env.set_training_progress(self.samples)
            self._episodes.reset_sums()
            if self._obs is None:
                self._obs = self._env.reset()
                self._episodes.restart()
            obs, self._obs = self._obs, None  # should the iteration break off, the next begins with a reset
            self._obs = self._collect(obs)
            collected = time.perf_counter()
            new_samples = self._config.steps_per_iter * self._env.num_envs
            self.samples += new_samples
            figures = self._update(self._obs)
            self.iteration += 1
            end = time.perf_counter()
            self._train_seconds += end - start
            self.wall_seconds = end - run.start
            rate = new_samples / (end - start)
            figures |= {"collect_s": collected - start, "update_s": end - collected}
            result = self._iteration_result(figures, rate)
            self.observer.on_iteration_end(result)
            log_numbers(run.logger, result)
            run.logger.write_media(result[MEDIA_KEY], self.samples)
            run.media = result[MEDIA_KEY]
        run.bar.update(self.samples, samples_per_s=rate, episode_return=self._episodes.mean_return)

    def _iteration_result(self, figures: Mapping[str, float], rate: float) -> dict[str, Any]:
        episodes = self._episodes
        return {
            STEP_KEY: self.samples,
            "iteration": self.iteration,
            "wall_time_s": self.wall_seconds,
            "train_time_s": self._train_seconds,
            "samples_per_s": rate,
            "train/mean_return": episodes.mean_return,
            "train/mean_ep_len": episodes.mean_length,
            "train/num_eps": episodes.num_episodes,
            **{f"update/{key}": value for key, value in figures.items()},
            MEDIA_KEY: self._env.pop_media(),
        }

    def _test_in_training(self, run: TrainingRun) -> None:
        if self._config.test_episodes == 0:
            return
        run.result = result = self.test(self._config.test_episodes)
        log_numbers(run.logger, result, "test")
        run.logger.write_media(result[MEDIA_KEY], self.samples)
        run.bar.say(
            f"{self.samples:,} samples, {self.wall_seconds / 60:.1f} min: test return {result['mean_return']:.1f} "
            f"(normalised {result['normalised_return']:.3f}), length {result['mean_ep_len']:.0f}, "
            f"falls {result['falls']} of {result['num_eps']}"
        )

    def _keep_best(self, run: TrainingRun) -> None:
        if run.result and run.result["mean_return"] > self._best_return:
            self._best_return = run.result["mean_return"]
            self._save_model(run.out_dir / BEST_MODEL_FILE, must=False)

    def _save_model(self, path: Path, *, must: bool) -> None:
        with self._published():
            try_save(lambda: self.save(path), must=must)

    def _save_run(self, run: TrainingRun, *, must: bool) -> None:
        self.wall_seconds = time.perf_counter() - run.start
        self._save_model(run.out_dir / MODEL_FILE, must=must)
        try_save(lambda: self.save_checkpoint(run.out_dir / CHECKPOINT_FILE), must=must)
        run.saved_at = self.iteration

    def _save_what_can_be(self, run: TrainingRun) -> None:
        try:
            self._save_run(run, must=False)
        except Exception as error:  # the one that ended training is the one to tell
            LOG.error("could not save: %s: %s", type(error).__name__, error)

    def _run_facts(self) -> dict[str, Any]:
        facts = {"samples": self.samples, "iterations": self.iteration, "train_time_s": self._train_seconds}
        if self._train_seconds:
            facts["samples_per_s"] = self.samples / self._train_seconds
        facts |= {"best_return": self._best_return} if math.isfinite(self._best_return) else {}
        return facts | ({"stop_reason": self._stop_reason} if self._stop_reason else {})

    # ------------------------------------------------------------------ testing

    def test(self, num_episodes: int) -> dict[str, Any]:
        """Play whole episodes with the policy's mean actions, the same number in every environment.

        Args:
            num_episodes: rounded up to a multiple of the number of environments; further episodes that the
                faster environments play meanwhile don't count.

        Returns:
            mean_return; normalised_return (of the best that a full episode can return); mean_ep_len (steps); num_eps;
            falls; what the environment measured; episode_media.
        """
        if num_episodes < 1:
            raise ValueError(f"test: expected at least 1 episode, found {num_episodes}")
        env = self._env
        tracker = EpisodeTracker(env.num_envs, self._device, quota=-(-num_episodes // env.num_envs))
        self._obs = None  # episodes that training had under way end here
        env.set_training_progress(self.samples)
        self.observer.on_test_start()
        env.set_mode(EnvMode.TEST)
        try:
            obs = env.reset()
            while not tracker.complete:
                obs, reward, done, _ = env.step(self.act(obs))
                ended = tracker.step(torch.nan_to_num(reward, 0.0, 0.0, 0.0), done)
                if len(ended) and not tracker.complete:
                    obs = env.reset(ended)
            figures = env.record_diagnostics()
        except KeyboardInterrupt:
            self.interrupted = {**self._test_facts(tracker), **env.record_diagnostics()}
            raise
        finally:
            env.set_mode(EnvMode.TRAIN)
        result = {**self._test_facts(tracker), **figures, MEDIA_KEY: env.pop_media()}
        self.observer.on_test_end(result)
        return result

    def _test_facts(self, tracker: EpisodeTracker) -> dict[str, Any]:
        return tracker.facts(full_return=self._env.max_episode_steps * self._env.reward_bound)

    # ------------------------------------------------------------------ files

    def save(self, path: str | Path) -> None:
        """Write the model: networks, normalisers, and the configuration they were made with."""
        save_file(self._model_content(), path, MODEL_FORMAT)

    def _model_content(self) -> dict[str, Any]:
        return {
            "agent": type(self).__name__,
            "config": plain(self._config),
            "samples": self.samples,
            "model": self._model.state_dict(),
        }

    def load(self, path: str | Path) -> None:
        """Read a model that save() wrote; samples is then what it was trained with, until train() counts anew.

        Raises:
            ModelFileError: a file that isn't there, is of another kind, holds code, or does not fit; names
                the file.
        """
        content = load_file(path, MODEL_FORMAT, self._device)
        load_module(self._model, get_part(content, "model", dict, path), path)
        self.samples = int(content.get("samples", 0))
        self._untrained = True
        self._check_loaded(path)

    def _check_loaded(self, path: str | Path) -> None:
        """Warn of a loaded model that fits, but was made for another environment."""

    def save_checkpoint(self, path: str | Path) -> None:
        """Write all that going on with the training needs, as if it had never stopped."""
        content = {
            **self._model_content(),
            "learner": self._learner_state(),
            "env": self._env.state_dict(),
            "obs": self._obs,
            "episodes": self._episodes.state_dict(),
            "iteration": self.iteration,
            "train_seconds": self._train_seconds,
            "wall_seconds": self.wall_seconds,
            "best_return": self._best_return,
            "generator": self._generator.get_state(),
            "torch_generator": torch.get_rng_state(),
        }
        save_file(content, path, CHECKPOINT_FORMAT)

    def load_checkpoint(self, path: str | Path) -> None:
        """Read a checkpoint.pt, or that of a run folder.

        Raises:
            ModelFileError: as load(), and for a checkpoint of another agent or number of environments.
        """
        path = Path(path)
        path = path / CHECKPOINT_FILE if path.is_dir() else path
        content = load_file(path, CHECKPOINT_FORMAT, self._device)
        if content.get("agent") != type(self).__name__:
            raise ModelFileError(f"{path}: expected a training of {type(self).__name__}, found {content.get('agent')}")
        obs, count = content.get("obs"), self._env.num_envs
        if isinstance(obs, Tensor) and obs.shape[0] != count:
            raise ModelFileError(f"{path}: expected {count} environments, found {obs.shape[0]}")
        load_module(self._model, get_part(content, "model", dict, path), path)
        try:
            self._load_training(content)
        except (KeyError, TypeError, ValueError, RuntimeError) as err:
            raise ModelFileError(f"{path}: does not fit this configuration: {type(err).__name__}: {err}") from err

    def _load_training(self, content: Mapping[str, Any]) -> None:
        self._load_learner_state(content["learner"])
        self._env.load_state_dict(content["env"])
        self._obs = content["obs"]
        self._episodes.load_state_dict(content["episodes"])
        self.samples, self.iteration = int(content["samples"]), int(content["iteration"])
        self._train_seconds, self.wall_seconds = float(content["train_seconds"]), float(content["wall_seconds"])
        self._best_return = float(content["best_return"])
        self._untrained = False
        self._generator.set_state(content["generator"].cpu())
        torch.set_rng_state(content["torch_generator"].cpu())
