"""Collects what a recording sees, state by state: poses from the engine, and what the environment says of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mimickit.video.clip import Episode
from mimickit.video.snapshot import ActorPose, FloatArray, Moment, Snapshot, copy_poses, plain

EnvState = tuple[Sequence[ActorPose], Sequence[FloatArray]]
"""Body poses and ground forces (N) of every actor of an environment, as copies that are the tape's own."""


@dataclass
class _EnvTape:
    """One environment's part."""

    env_id: int
    episodes: list[Episode] = field(default_factory=list)
    annotations: dict[str, Any] = field(default_factory=dict)  # of the next state
    ghost: list[ActorPose] = field(default_factory=list)
    is_fresh: bool = True  # an episode begins: the state before its first step has not been seen
    episode_steps: int = 0


class Tape:
    """The states of a recording. The last one is held back until the next, so that it can be annotated.

    Of one environment an episode of n steps has n + 1 states. Several keep in step: an episode that begins while
    another goes on shows its states from the first step on.
    """

    def __init__(self, env_ids: Sequence[int], dt: float) -> None:
        """dt: seconds between two states."""
        self._tapes = {env: _EnvTape(env) for env in env_ids}
        self._dt = dt
        self._pending: Moment | None = None
        self.num_states = 0

    @property
    def wants_start(self) -> bool:
        """Whether the state before the next step is to be seen: everywhere an episode begins."""
        return all(tape.is_fresh for tape in self._tapes.values())

    @property
    def pending(self) -> Moment | None:
        """The state that is held back."""
        return self._pending

    def drop_pending(self) -> None:
        """The state that was held back has been handed on."""
        self._pending = None

    def episodes(self) -> list[Episode]:
        """What was seen of every episode, by its first state; first_frame and num_frames count states."""
        found = [episode for tape in self._tapes.values() for episode in tape.episodes if episode.num_frames]
        return sorted(found, key=lambda episode: episode.first_frame)

    def see(self, read: Callable[[int], EnvState], *, is_start: bool) -> None:
        """Take the present state: the start of an episode, or what a step has led to. The pending one must be gone."""
        moment = tuple(self._snapshot(tape, read(tape.env_id), is_start) for tape in self._tapes.values())
        self._pending = moment
        self.num_states += 1

    def _snapshot(self, tape: _EnvTape, state: EnvState, is_start: bool) -> Snapshot:
        is_cut = tape.is_fresh
        if is_cut:
            tape.is_fresh, tape.episode_steps = False, 0
            if not tape.episodes or tape.episodes[-1].num_frames:
                self._open_episode(tape, {})
        tape.episode_steps += not is_start
        episode = tape.episodes[-1]
        episode.num_frames += 1
        episode.length = tape.episode_steps
        if is_cut:
            episode.first_frame = self.num_states
        return Snapshot(
            time=self.num_states * self._dt,
            env_id=tape.env_id,
            step=self.num_states,
            poses=list(state[0]),
            ghosts=tape.ghost,
            contacts=list(state[1]),
            is_cut=is_cut,
            annotations={**tape.annotations, "episode_time": tape.episode_steps * self._dt},
        )

    # ------------------------------------------------------------------ what the environment says

    def begin_episode(self, env_id: int, info: Mapping[str, Any]) -> None:
        """An environment was reset; the pending state is not its."""
        tape, facts = self._tapes[env_id], plain(info)
        tape.annotations = {"episode": facts.get("episode", len(tape.episodes)), "episode_return": 0.0}
        tape.is_fresh = True
        self._open_episode(tape, facts)

    def end_episode(
        self, env_id: int, length: int, episode_return: float, outcome: str, info: Mapping[str, Any]
    ) -> None:
        """The episode ended with the last step."""
        episodes = self._tapes[env_id].episodes
        if episodes:
            episodes[-1].length, episodes[-1].outcome = int(length), str(outcome)
            episodes[-1].episode_return = float(episode_return)
            episodes[-1].info.update(plain(info))

    def annotate(self, env_id: int, values: Mapping[str, Any]) -> None:
        """Facts about the last state; before an episode's first step, about its first."""
        snapshot = self._last_of(env_id)
        (self._tapes[env_id].annotations if snapshot is None else snapshot.annotations).update(plain(values))

    def set_ghost(self, env_id: int, poses: Sequence[tuple[Any, Any]]) -> None:
        """Where the reference is at the last state."""
        tape, snapshot = self._tapes[env_id], self._last_of(env_id)
        tape.ghost = copy_poses(poses)
        if snapshot is not None:
            snapshot.ghosts = tape.ghost

    def _last_of(self, env_id: int) -> Snapshot | None:
        """The pending snapshot of an environment; None if an episode begins with the next."""
        if self._pending is None or self._tapes[env_id].is_fresh:
            return None
        return next(snapshot for snapshot in self._pending if snapshot.env_id == env_id)

    def _open_episode(self, tape: _EnvTape, info: dict[str, Any]) -> None:
        if tape.episodes and tape.episodes[-1].num_frames == 0:
            tape.episodes.pop()
        tape.episodes.append(Episode(first_frame=self.num_states, env_id=tape.env_id, info=info))
