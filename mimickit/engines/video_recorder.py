"""The recorder of an engine: its contract and life cycle, the same for all backends."""

import abc
import contextlib
import logging
import re
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mimickit.util.keys import ConfigError
from mimickit.video.camera_rig import make_camera
from mimickit.video.clip import Clip, Episode
from mimickit.video.config import GhostMode, VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.film_crew import ClipPlan, FilmCrew, Filmer, Wrap
from mimickit.video.frame_writer import find_ffmpeg, reserve_name
from mimickit.video.gl import call_before_exit
from mimickit.video.snapshot import ActorPose, ActorSpec, Snapshot, copy_poses, plain

_log = logging.getLogger("mimickit.video")
_SUFFIX = ".mp4"
_RATE_TOLERANCE = 1e-6


class FilmedEngine(Protocol):
    """All that a recorder asks of an engine."""

    def get_name(self) -> str:
        """Name of the backend."""

    def get_num_envs(self) -> int:
        """Number of environments."""

    def get_timestep(self) -> float:
        """Length of a control step (s)."""

    def stage_actors(self, env_id: int) -> list[ActorSpec]:
        """Who is on stage in an environment."""

    def body_poses(self, env_id: int) -> list[ActorPose]:
        """For each actor copies of its bodies' positions (B, 3) m and rotations (B, 4)."""


@dataclass
class _Take:
    """What is known of the clip under way."""

    episodes: list[Episode] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    pending: Snapshot | None = None  # the last frame: held back until the next, so that it can be annotated
    annotations: dict[str, Any] = field(default_factory=dict)  # of the next frame
    ghost: list[ActorPose] = field(default_factory=list)
    is_fresh: bool = True  # the state before the next step is to be filmed
    is_cut: bool = True  # the next frame is the first of an episode
    ticks: int = 0  # states seen: n + 1 for an episode of n steps
    num_frames: int = 0  # of them kept
    episode_steps: int = 0


class VideoRecorder(abc.ABC):
    """Films one environment of an engine into one clip after the other.

    The engine calls before_step() and after_step() while is_recording; the environment may say where episodes
    begin and end and what is to be written into the picture. An episode of n steps has n + 1 frames. A
    failure of filming is logged once, ends the clip and raises nothing, unless the configuration is strict:
    then VideoError.

    A subclass says how a snapshot becomes a picture (_make_filmer).
    """

    def __init__(self, engine: FilmedEngine, config: VideoConfig) -> None:
        self._engine = engine
        self._base_config = config
        self._config = config
        self._crew: FilmCrew | None = None
        self._context: dict[str, Any] = {}
        self._reported: set[str] = set()
        self._last_clip: Clip | None = None
        self._recording = False
        self._ending: Future[Wrap] | None = None
        self._take = _Take()

    @abc.abstractmethod
    def _make_filmer(self) -> Filmer:
        """What turns this engine's snapshots into pictures; it opens nothing before it is asked for one."""

    # ------------------------------------------------------------------ life of a clip

    @property
    def is_recording(self) -> bool:
        """Whether steps are being filmed: from start() to stop(), or to the failure that ended the clip."""
        return self._recording

    @property
    def last_clip(self) -> Clip | None:
        """The last clip that was finished."""
        return self._last_clip

    @property
    def env_id(self) -> int:
        """The environment that this clip shows, or the last one did."""
        return self._config.env

    @property
    def wants_ghost(self) -> bool:
        """Whether set_ghost() would be seen."""
        return self._recording and self._config.ghost is not GhostMode.OFF

    def set_context(self, **facts: Any) -> None:
        """Facts for the names and side files of the next clips: name (what the film shows), model_file,
        samples, seed; anything else is kept under `context`.
        """
        self._context.update(plain(facts))

    def start(self, path: str | Path | None = None, **overrides: Any) -> None:
        """Begin a clip at the present state.

        Args:
            path: a file (.mp4), or a folder in which to name it; None is the configured folder. A file that
            exists is kept: the new one gets a number. overrides: fields of VideoConfig, for this clip.

        Raises ConfigError for what can't be meant (unknown fields, no such environment) and RuntimeError
        during another recording.
        """
        if self._recording or self._ending is not None:
            raise RuntimeError("a recording is under way; stop it before starting another")
        self._last_clip = None  # of a clip that fails there is none
        self._config = config = self._base_config.updated(overrides, "video recording")
        num_envs = self._engine.get_num_envs()
        if config.env >= num_envs:
            raise ConfigError(f"video: env: expected less than num_envs, {num_envs}, found {config.env}")
        make_camera(config.camera)
        wanted = self._choose_path(path)
        self._take = _Take()
        try:
            find_ffmpeg()
            self._plan = ClipPlan(
                config=config,
                actors=self._engine.stage_actors(config.env),
                path=reserve_name(wanted),
                fps=self._choose_fps(),
                width=config.even_size[0],
                height=config.even_size[1],
            )
            if self._crew is None:
                self._crew = FilmCrew(self._make_filmer())
                _OPEN.add(self)
            self._crew.begin(self._plan)
        except Exception as error:  # whatever it is, it is no reason to end a training
            self._fail(error)
            return
        self._recording = True
        _ACTIVE.add(self)

    def stop(self) -> Clip | None:
        """End the clip and wait until its file is complete; None if nothing is being filmed or filming has
        failed.

        A clip that was started and never stepped shows the present state in one frame.
        """
        if self._recording:
            self._end()
        if self._ending is None:
            return None
        wrap = self._ending.result()  # if Ctrl-C comes here, calling stop() again waits on
        self._ending = None
        _ACTIVE.discard(self)
        clip = self._conclude(wrap)
        if wrap.error is not None:
            self._fail(wrap.error)
        return clip

    def close(self) -> None:
        """Finish a clip that is being filmed and free the film crew; may be called twice."""
        try:
            self.stop()
        finally:
            if self._crew is not None:
                self._crew.close()
                self._crew = None

    # ------------------------------------------------------------------ called by the engine

    def before_step(self) -> None:
        """The state before a step: filmed where a clip or an episode begins."""
        if self._recording and self._take.is_fresh:
            self._try(self._capture, True)

    def after_step(self) -> None:
        """The state after a step."""
        if self._recording:
            self._try(self._capture, False)

    # ------------------------------------------------------------------ called by the environment

    def begin_episode(self, info: Mapping[str, Any] | None = None) -> None:
        """The filmed environment was reset: the next frame shows its new state. The side file keeps info."""
        if not self._recording:
            return
        self._try(self._push)
        take, facts = self._take, plain(info or {})
        take.annotations = {"episode": facts.get("episode", len(take.episodes)), "episode_return": 0.0}
        take.is_fresh = True
        self._open_episode(facts)

    def end_episode(
        self, length: int, episode_return: float, outcome: str, info: Mapping[str, Any] | None = None
    ) -> None:
        """The episode ended with the last step: how many steps, its return, and how (fail, success, time)."""
        if self._recording and self._take.episodes:
            episode = self._take.episodes[-1]
            episode.length, episode.outcome = int(length), str(outcome)
            episode.episode_return = float(episode_return)
            episode.info.update(plain(info or {}))

    def annotate(self, **values: Any) -> None:
        """Facts about the last frame (before an episode's first step: about its first): episode, episode_time
        (s), episode_return, reward, ...
        """
        if self._recording:
            pending = self._take.pending
            (self._take.annotations if pending is None else pending.annotations).update(plain(values))

    def set_ghost(self, poses: Sequence[tuple[Any, Any]]) -> None:
        """Where the reference is at the last frame: (pos (B, 3) m, rot (B, 4)) of the first actor and any
        after it.
        """
        if self.wants_ghost:
            self._take.ghost = copy_poses(poses)
            if self._take.pending is not None:
                self._take.pending.ghosts = self._take.ghost

    # ------------------------------------------------------------------ frames

    def _capture(self, is_start: bool) -> None:
        """Film the present state: the start of an episode, or what a step has led to."""
        if self._crew is not None and self._crew.error is not None:
            raise self._crew.error
        self._push()
        take = self._take
        if is_start:
            take.is_fresh, take.is_cut, take.episode_steps = False, True, 0
            if not take.episodes:
                self._open_episode({})
        else:
            take.episode_steps += 1
            take.episodes[-1].length = take.episode_steps
        tick, take.ticks = take.ticks, take.ticks + 1
        if self._keeps(tick):
            self._expose(tick)

    def _expose(self, tick: int) -> None:
        take, dt = self._take, self._engine.get_timestep()
        take.pending = Snapshot(
            time=tick * dt,
            env_id=self._config.env,
            step=tick,
            poses=copy_poses(self._engine.body_poses(self._config.env)),
            ghosts=take.ghost,
            is_cut=take.is_cut,
            annotations={**take.annotations, "episode_time": take.episode_steps * dt},
        )
        take.is_cut = False
        take.num_frames += 1
        take.episodes[-1].num_frames += 1

    def _keeps(self, tick: int) -> bool:
        """Whether a state becomes a frame: each at the control rate, evenly spread ones at a lower rate."""
        frames_a_tick = self._plan.fps * self._engine.get_timestep()
        frame, last = (int((t + _RATE_TOLERANCE) * frames_a_tick) for t in (tick, tick - 1))
        return tick == 0 or frame > last

    def _push(self) -> None:
        """Hand the last frame to the film crew; nothing can be said of it any more."""
        if self._take.pending is not None and self._crew is not None:
            self._crew.film(self._take.pending)  # Ctrl-C in the wait for the crew: the frame is still there
            self._take.pending = None

    def _open_episode(self, info: dict[str, Any]) -> None:
        episodes = self._take.episodes
        if episodes and episodes[-1].num_frames == 0:
            episodes.pop()
        episodes.append(Episode(first_frame=self._take.num_frames, info=info))

    # ------------------------------------------------------------------ choices

    def _choose_fps(self) -> float:
        rate = 1.0 / self._engine.get_timestep()
        config, fps = self._config, self._config.fps
        notes = self._take.notes
        if fps is not None and fps > rate + _RATE_TOLERANCE:
            notes.append(f"fps: {fps:g} asked for, {rate:g} filmed: there is one state a control step")
        if (config.width, config.height) != config.even_size:
            asked, filmed = f"{config.width}x{config.height}", "{}x{}".format(*config.even_size)
            notes.append(f"size: {asked} asked for, {filmed} filmed: players of H.264 need even numbers")
        for note in notes:
            self._report(note, logging.INFO)
        return rate if fps is None else min(fps, rate)

    def _choose_path(self, path: str | Path | None) -> Path:
        if path is not None and Path(path).suffix.lower() == _SUFFIX:
            return Path(path)
        if path is not None and Path(path).suffix and not Path(path).is_dir():
            raise ConfigError(f"video recording: path: expected a folder or a {_SUFFIX} file, found {path}")
        folder = Path(path) if path is not None else self._config.out_dir or Path("videos")
        name = re.sub(r"[^\w.+-]+", "_", str(self._context.get("name") or "film"))
        samples = self._context.get("samples")
        return folder / (f"{name}{_SUFFIX}" if samples is None else f"{name}_{int(samples):012d}{_SUFFIX}")

    # ------------------------------------------------------------------ ends

    def _end(self) -> None:
        """Tell the crew that the clip is over."""
        try:
            assert self._crew is not None
            if self._take.ticks == 0 and self._crew.error is None:
                self._capture(is_start=True)
            self._push()
            self._ending = self._crew.finish()
            self._recording = False
        except Exception as error:
            self._give_up(error)

    def _conclude(self, wrap: Wrap) -> Clip | None:
        if wrap.path is None:
            return None
        facts = {key: value for key, value in self._context.items() if key != "name"}
        model_file = facts.pop("model_file", None)
        self._last_clip = clip = Clip(
            path=wrap.path,
            side_file=wrap.path.with_suffix(".json"),
            fps=self._plan.fps,
            num_frames=wrap.num_frames,
            width=self._plan.width,
            height=self._plan.height,
            engine=str(facts.pop("engine", self._engine.get_name())),
            env_id=self._config.env,
            camera=self._config.camera,
            episodes=tuple(episode for episode in self._take.episodes if episode.num_frames),
            seed=facts.pop("seed", None),
            model_file=None if model_file is None else str(model_file),
            samples=facts.pop("samples", None),
            notes=tuple(self._take.notes),
            context=facts,
        )
        try:
            clip.write_side_file()
        except OSError as error:
            wrap.error = VideoError(f"{clip.side_file}: can't be written: {error.strerror or error}")
        return clip

    def _try(self, act: Any, *args: Any) -> None:
        try:
            act(*args)
        except Exception as error:  # whatever it is, it is no reason to end a training
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """End a clip that can't go on."""
        self._recording = False
        self._take.pending = None
        _ACTIVE.discard(self)
        if self._crew is not None:
            try:
                self._crew.finish().result()
            except VideoError:
                self._crew = None  # its thread is gone; the next clip gets a new one
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        told = isinstance(error, (VideoError, ValueError))
        cause = str(error) if told else f"{type(error).__name__}: {error}"
        self._report(f"filming failed; the run goes on without this clip: {cause}", logging.WARNING)
        _log.debug("the failure in full", exc_info=error)
        if self._config.strict:
            raise VideoError(cause) from error

    def _report(self, text: str, level: int) -> None:
        if text not in self._reported:
            self._reported.add(text)
            _log.log(level, text)


_ACTIVE: set[VideoRecorder] = set()  # with a clip under way: kept alive until it is finished
_OPEN: "weakref.WeakSet[VideoRecorder]" = weakref.WeakSet()  # with a film crew


def _close_all() -> None:
    for recorder in {*_ACTIVE, *_OPEN}:
        # strict, at the very end: it was logged, and there is nobody left to catch it
        with contextlib.suppress(VideoError):
            recorder.close()


call_before_exit(_close_all)
