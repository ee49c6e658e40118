"""Callbacks that are ready for use; --callbacks knows them by their names in registry.py."""

import logging
import math
from collections.abc import Iterable, Mapping
from typing import Any

from mimickit.media.callbacks import Callback
from mimickit.media.episode import Episode
from mimickit.media.line_plot import plot_lines
from mimickit.media.values import image
from mimickit.util.keys import ConfigError, as_int

LOG = logging.getLogger("mimickit.media")


class PickedClips(Callback):
    """Clips of a test's best, worst and median episode over all environments: what --video_pick does."""

    def __init__(self, pick: str | Iterable[str] = "best,worst,median") -> None:
        """pick: some of best, worst, median and motion."""
        self._pick = pick

    def on_test_start(self) -> None:
        if not self.run.env.film_with(pick=self._pick):
            LOG.warning("%s has no effect without --video true", type(self).__name__)


class MotionClips(PickedClips):
    """A clip of every motion of a dataset, of its median episode; a test needs an episode of each."""

    def __init__(self) -> None:
        super().__init__("motion")


class ErrorPlots(Callback):
    """A plot of how far a test's episode strays from its reference, under the name error/MOTION."""

    def __init__(self, envs: int | str | Iterable[int] = 0, keys: str = "root_pos_err_m,body_pos_err_m") -> None:
        """envs: whose episodes are plotted. keys: of the environment's tracking errors, joined by commas."""
        ids = str(envs).split(",") if isinstance(envs, (int, str)) else envs
        self._envs = tuple(as_int(index, "envs", type(self).__name__) for index in ids)
        self._keys = [key.strip() for key in keys.split(",")]

    def step_envs(self, num_envs: int) -> Iterable[int]:
        return self._envs

    def on_episode_step(self, episode: Episode, env_index: int) -> None:
        for key in self._keys:
            if key in episode.info:
                episode.data.setdefault(key, []).append(episode.info[key])

    def on_episode_end(self, episode: Episode, env_index: int) -> None:
        curves = {key: episode.data[key] for key in self._keys if key in episode.data}
        if not curves:
            return
        motion = episode.motion or "episode"
        title = f"{motion}, env {env_index}: {episode.outcome}, return {episode.episode_return:.1f}"
        step = 1.0 / self.run.env.control_freq
        episode.media[f"error/{motion}"] = image(plot_lines(curves, step=step, title=title, x_label="s"), caption=title)


class _OfMetric(Callback):
    """Looks at one figure of every test in training."""

    def __init__(self, metric: str = "mean_return", better: str = "auto") -> None:
        """metric: a figure of a test's result. better: higher, lower, or auto: errors and falls are better lower."""
        if better not in ("auto", "higher", "lower"):
            raise ConfigError(f"{type(self).__name__}: better: expected auto, higher or lower, found {better!r}")
        self._metric = metric
        lower = better == "lower" or (better == "auto" and ("_err" in metric or metric == "falls"))
        self._sign = -1.0 if lower else 1.0
        self._best = -math.inf

    def _read(self, result: Mapping[str, Any]) -> float:
        """The figure, negative where lower is better. Raises ConfigError for one that there is not."""
        if not isinstance(result.get(self._metric), (int, float)):
            known = ", ".join(key for key, value in result.items() if isinstance(value, (int, float)))
            name = type(self).__name__
            raise ConfigError(f"{name}: metric: expected one of {known}, found {self._metric!r}")
        return self._sign * float(result[self._metric])

    def _is_better(self, value: float, by: float = 0.0) -> bool:
        """Whether value is the best so far, and by how much at least; it then is what others are compared with."""
        if not value > self._best + by:
            return False
        self._best = value
        return True

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._best = float(state["best"])


class EarlyStop(_OfMetric):
    """Ends training when a figure of its tests has been good enough, or has not improved for some tests."""

    def __init__(
        self,
        metric: str = "mean_return",
        better: str = "auto",
        *,
        patience: int | None = None,
        at: float | None = None,
        min_change: float = 0.0,
    ) -> None:
        """patience: tests in a row without an improvement by more than min_change. at: the value that is enough."""
        super().__init__(metric, better)
        if patience is None and at is None:
            raise ConfigError("EarlyStop: expected patience (tests) or at (a value of the metric), found neither")
        self._patience, self._at, self._min_change, self._waited = patience, at, min_change, 0

    def on_test_end(self, result: dict[str, Any]) -> None:
        if not self.run.is_training:
            return
        value = self._read(result)
        self._waited = 0 if self._is_better(value, self._min_change) else self._waited + 1
        if self._at is not None and value >= self._sign * self._at:
            self.run.stop(f"{self._metric} has reached {self._sign * value:g}")
        elif self._patience is not None and self._waited >= self._patience:
            self.run.stop(f"{self._metric} has not improved on {self._sign * self._best:g} for {self._waited} tests")

    def state_dict(self) -> dict[str, Any]:
        return {**super().state_dict(), "waited": self._waited}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self._waited = int(state["waited"])


class BestModel(_OfMetric):
    """Keeps the model of the test with the best figure: best_METRIC.pt in the run folder."""

    def on_test_end(self, result: dict[str, Any]) -> None:
        if self.run.is_training and self._is_better(self._read(result)):
            try:
                path = self.run.save_model(f"best_{self._metric}.pt")
            except OSError as error:  # it costs a model, not the training
                LOG.error("could not save: %s; training goes on", error)
                return
            LOG.info("%s %g is the best so far: %s", self._metric, result[self._metric], path)
