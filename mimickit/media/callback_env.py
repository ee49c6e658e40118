"""An environment that tells callbacks of its episodes, and delivers the media that they attach."""

import logging
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mimickit.envs.base_env import OUTCOMES, BaseEnv, DoneFlags, EnvMode
from mimickit.media.callbacks import Callback, Run, call_hook, hook_name, overrides
from mimickit.media.episode import Episode, EpisodeMedia
from mimickit.media.episode_state import pack_episode, unpack_episode
from mimickit.media.plain import NotPlainError, from_plain, to_plain
from mimickit.media.types import Media, join_media
from mimickit.util.keys import ConfigError

LOG = logging.getLogger("mimickit.media")
_KEY = "callbacks"  # of the state


class CallbackEnv(BaseEnv):
    """Another environment, whose episodes are followed as far as a callback asks for it.

    Steps go straight through where no callback has a hook of episodes. Where only their ends are asked for, lengths and
    returns of all environments are summed up in two additions a step.
    """

    def __init__(self, env: BaseEnv, callbacks: Sequence[Callback], run: Run) -> None:
        self.inner = env
        for name in ("num_envs", "device", "obs_space", "action_space", "max_episode_steps", "reward_bound",
                     "control_freq", "mode", "training_samples"):  # fmt: skip
            setattr(self, name, getattr(env, name))
        self._callbacks, self._run = list(callbacks), run
        self._returns = torch.zeros(env.num_envs, dtype=torch.float64, device=env.device)
        self._lengths = torch.zeros(env.num_envs, dtype=torch.int64, device=env.device)
        self._open: dict[int, Episode] = {}  # episodes under way that a callback has seen
        self._media: dict[str, list[Media]] = {}
        self._has_ended = False
        self._warned: set[str] = set()
        self._starts = [callback for callback in callbacks if overrides(callback, "on_episode_start")]
        self._ends = [callback for callback in callbacks if overrides(callback, "on_episode_end")]
        self._watchers: dict[int, list[Callback]] = {}  # by environment
        for callback in callbacks:
            if overrides(callback, "on_episode_step"):
                self._watch(callback)
        self._follows = bool(self._starts or self._ends or self._watchers)

    def _watch(self, callback: Callback) -> None:
        place = hook_name(callback, "step_envs")
        found = call_hook(callback, "step_envs", self.num_envs)
        try:
            ids = list(found)
        except TypeError:
            raise ConfigError(f"{place}: expected a list of environments, found {found!r}") from None
        for index in ids:
            if isinstance(index, bool) or not hasattr(index, "__index__"):
                raise ConfigError(f"{place}: expected numbers of environments, found {index!r}")
            if not 0 <= index < self.num_envs:
                raise ConfigError(f"{place}: expected environments below {self.num_envs}, found {index}")
        for index in dict.fromkeys(map(operator.index, ids)):
            self._watchers.setdefault(index, []).append(callback)

    def __getattr__(self, name: str) -> Any:
        """Whatever else the environment has."""
        if name == "inner":  # before __init__ has set it, as copying asks
            raise AttributeError(name)
        return getattr(self.inner, name)

    # ------------------------------------------------------------------ episodes

    def reset(self, env_ids: Tensor | None = None) -> Tensor:
        obs = self.inner.reset(env_ids)
        if self._follows:
            ids = range(self.num_envs) if env_ids is None else env_ids.tolist()
            for index in [index for index in ids if index in self._open]:
                self._drop(index)
            self._returns[slice(None) if env_ids is None else env_ids] = 0.0
            self._lengths[slice(None) if env_ids is None else env_ids] = 0
            if self._starts:
                for index in ids:
                    episode = self._episode(index)
                    for callback in self._starts:
                        call_hook(callback, "on_episode_start", episode, index)
        return obs

    def step(self, action: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Tensor]]:
        step = self.inner.step(action)
        if self._follows:
            self._follow(action, *step)
        return step

    def _follow(self, action: Tensor, obs: Tensor, reward: Tensor, done: Tensor, info: Mapping[str, Tensor]) -> None:
        self._returns += torch.nan_to_num(reward, 0.0, 0.0, 0.0)
        self._lengths += 1
        ended = torch.nonzero(done != DoneFlags.NULL).squeeze(-1).tolist()
        # those with media of their own are delivered also where nobody asks for ends
        closing = [index for index in ended if self._ends or index in self._open]
        touched = list(dict.fromkeys([*self._watchers, *closing]))
        if not touched:
            return
        self._bring_up_to_date(touched, action, obs, reward, info)
        for index, callbacks in self._watchers.items():
            for callback in callbacks:
                call_hook(callback, "on_episode_step", self._open[index], index)
        for index, flag in zip(closing, done[closing].tolist(), strict=True):
            episode = self._open[index]
            episode.outcome = OUTCOMES[DoneFlags(flag)]
            for callback in self._ends:
                call_hook(callback, "on_episode_end", episode, index)
            self._drop(index)

    def _bring_up_to_date(
        self, ids: list[int], action: Tensor, obs: Tensor, reward: Tensor, info: Mapping[str, Tensor]
    ) -> None:
        """Write the last step into the episodes under way in some environments, all read at once."""
        rows = {name: values[ids].detach().cpu().numpy() for name, values in info.items()}
        lengths, returns, rewards = (values[ids].tolist() for values in (self._lengths, self._returns, reward))
        new_obs, actions = obs[ids].detach().cpu().numpy(), action[ids].detach().cpu().numpy()
        for row, index in enumerate(ids):
            episode = self._episode(index)
            episode.length, episode.episode_return, episode.reward = lengths[row], returns[row], rewards[row]
            episode.obs, episode.action = new_obs[row], actions[row]
            episode.info = {name: _value(values[row]) for name, values in rows.items()}

    def _episode(self, index: int) -> Episode:
        """The episode under way in an environment."""
        if index not in self._open:
            facts, samples = self.inner.episode_facts(index), self.training_samples
            motion = facts.get("motion")
            self._open[index] = Episode(
                env_index=index,
                media=self._new_media(index, samples),
                seed=self._run.seed, samples=samples, is_test=self.mode is EnvMode.TEST,
                motion=None if motion is None else Path(str(motion)).stem, facts=facts,
            )  # fmt: skip
        return self._open[index]

    def _new_media(self, index: int, samples: int) -> EpisodeMedia:
        store, stem = self._run.store, f"_{samples:012d}_env{index}"
        return EpisodeMedia(lambda name, value: store.keep(name, value, stem=f"{name}{stem}"), store.discard)

    def _drop(self, index: int) -> None:
        """An episode is over, or broken off: its media are ready."""
        self._media = join_media(self._media, self._open.pop(index).media.take())

    # ------------------------------------------------------------------ as the environment itself

    def set_mode(self, mode: EnvMode) -> None:
        for index in list(self._open) if mode is not self.mode else ():
            self._drop(index)
        self.inner.set_mode(mode)
        self.mode = mode

    def set_training_progress(self, samples: int) -> None:
        self.inner.set_training_progress(samples)
        self.training_samples = samples

    def set_training_ended(self, ended: bool) -> None:
        self._has_ended = ended
        self.inner.set_training_ended(ended)

    def seed(self, seed: int) -> None:
        self.inner.seed(seed)

    def render(self, env_ids: Sequence[int] | None = None) -> list[np.ndarray]:
        return self.inner.render(env_ids)

    def episode_facts(self, env_id: int) -> dict[str, Any]:
        return self.inner.episode_facts(env_id)

    def film_with(self, **options: Any) -> bool:
        return self.inner.film_with(**options)

    def record_diagnostics(self) -> dict[str, float]:
        return self.inner.record_diagnostics()

    def pop_media(self, *, wait: bool = False) -> dict[str, list[Media]]:
        """As that of any environment; wait, as the end of training, has those of episodes under way too."""
        for episode in self._open.values() if wait or self._has_ended else ():
            self._media = join_media(self._media, episode.media.take())
        media, self._media = self._media, {}
        pending, self._run.pending = self._run.pending, {}
        return join_media(self.inner.pop_media(wait=wait), media, pending)

    def state_dict(self) -> dict[str, Any]:
        own = {
            "returns": self._returns.clone(), "lengths": self._lengths.clone(),
            # media of a training that has ended are delivered as it ends, not once more by one that goes on with it
            "open": [pack_episode(episode, self._run.store, with_media=not self._has_ended, warn=self._warn)
                     for episode in self._open.values()],
            "of": [{"name": _name(callback), "state": self._state_of(callback)} for callback in self._callbacks],
        }  # fmt: skip
        return {**self.inner.state_dict(), _KEY: own}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.inner.load_state_dict(state)
        self.training_samples = self.inner.training_samples
        own = state.get(_KEY)
        if own is None:  # of a training without callbacks
            return
        self._returns.copy_(own["returns"])
        self._lengths.copy_(own["lengths"])
        self._open = {
            packed["env_index"]: unpack_episode(packed, self._new_media, self._run.store)
            for packed in own.get("open", ()) if self._follows and packed["env_index"] < self.num_envs
        }  # fmt: skip
        states = list(own["of"])
        for callback in self._callbacks:
            found = next((entry for entry in states if entry["name"] == _name(callback)), None)
            if found is not None:
                states.remove(found)
                if found["state"] is not None:
                    call_hook(callback, "load_state_dict", from_plain(found["state"]))

    def _state_of(self, callback: Callback) -> Any:
        """What a callback wants to have again; None if a checkpoint can't hold it."""
        state = call_hook(callback, "state_dict")
        try:
            return to_plain(state)
        except NotPlainError as error:
            self._warn(f"{hook_name(callback, 'state_dict')}: expected plain values and tensors, found {error}; "
                       "--resume will begin without any")  # fmt: skip
            return None

    def _warn(self, words: str) -> None:
        """Once, though every checkpoint has the same to say."""
        if words not in self._warned:
            self._warned.add(words)
            LOG.warning("%s", words)

    def close(self) -> None:
        self.inner.close()


def _name(callback: Callback) -> str:
    return f"{type(callback).__module__}:{type(callback).__qualname__}"


def _value(value: Any) -> Any:
    """A plain number of what is one."""
    return value.item() if isinstance(value, np.generic) else value
