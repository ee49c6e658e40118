"""What a user hooks into training and tests: look at episodes and results, attach media, stop early, keep models."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mimickit.media.episode import Episode
from mimickit.media.store import MediaStore
from mimickit.media.types import Media


class Trainer(Protocol):
    """What a callback may ask of an agent."""

    samples: int
    iteration: int

    def save(self, path: str | Path) -> None:
        """Write the model."""

    def request_stop(self, reason: str) -> None:
        """Let training end after the present iteration."""


class CallbackError(RuntimeError):
    """A hook has failed; the message names callback and hook, and the exception behind it says where."""


@dataclass
class Run:
    """The run that a callback is part of."""

    out_dir: Path
    env: Any
    """The environment."""
    store: MediaStore
    seed: int = 0
    agent: Trainer | None = None
    """None where there is no policy: a clip is viewed."""
    is_training: bool = False
    pending: dict[str, list[Media]] = field(default_factory=dict)

    @property
    def samples(self) -> int:
        """That training has taken so far."""
        return self.env.training_samples if self.agent is None else self.agent.samples

    def attach(self, name: str, value: Any) -> None:
        """Deliver media with the next result, or with the one that a hook is being told of.

        Raises:
            MediaError: as for episode.media.
        """
        stem = f"{name}_{self.samples:012d}"
        self.pending.setdefault(name, []).extend(self.store.keep(name, value, stem=stem))

    def stop(self, reason: str) -> None:
        """End training after the present iteration and its test; nothing else is ended."""
        if self.agent is not None:
            self.agent.request_stop(reason)

    def save_model(self, name: str) -> Path:
        """Write the policy as it is now to a file of the run folder. Raises OSError."""
        if self.agent is None:
            raise RuntimeError("save_model: there is no policy in this run")
        path = self.out_dir / name
        self.agent.save(path)
        return path


class Callback:
    """Hooks that do nothing; a subclass overrides those that it needs. One that isn't overridden costs nothing.

    Named in an agent's YAML or with --callbacks as package.module:Class; options are arguments of its __init__.
    """

    run: Run
    """Set before any hook is called."""

    def on_train_start(self) -> None:
        """Training begins, or goes on."""

    def on_iteration_end(self, result: dict[str, Any]) -> None:
        """An iteration of training has ended. What is put into result, whose keys are the log's, is logged."""

    def on_test_start(self) -> None:
        """A test begins: at the end, or in the middle of training."""

    def on_test_end(self, result: dict[str, Any]) -> None:
        """A test has ended. What is put into result (mean_return, falls, ..., episode_media) is logged."""

    def step_envs(self, num_envs: int) -> Iterable[int]:
        """The environments whose steps on_episode_step sees: the fewer, the cheaper. By default the first."""
        return (0,)

    def on_episode_start(self, episode: Episode, env_index: int) -> None:
        """An episode begins, in any environment."""

    def on_episode_step(self, episode: Episode, env_index: int) -> None:
        """A step was taken in one of step_envs."""

    def on_episode_end(self, episode: Episode, env_index: int) -> None:
        """An episode has ended, in any environment; its environment still stands as it ended."""

    def state_dict(self) -> dict[str, Any]:
        """What resuming needs: plain values and tensors."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take up the state of state_dict()."""


def overrides(callback: Callback, hook: str) -> bool:
    """Whether a callback has a hook of its own."""
    return getattr(type(callback), hook) is not getattr(Callback, hook) or hook in vars(callback)


def call_hook(callback: Callback, hook: str, *args: Any) -> Any:
    """Call a hook and return what it does.

    Raises:
        CallbackError: for whatever it raises, but Ctrl-C.
    """
    try:
        return getattr(callback, hook)(*args)
    except CallbackError:
        raise
    except Exception as error:
        raise CallbackError(f"{hook_name(callback, hook)}: {type(error).__name__}: {error}") from error


def hook_name(callback: Callback, hook: str) -> str:
    """Class and method, as errors name them."""
    return f"{type(callback).__name__}.{hook}"
