"""The recorder of an engine: its contract and life cycle, the same for all backends."""

import abc
import contextlib
import logging
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from mimickit.util.keys import ConfigError
from mimickit.video.camera.camera_rig import make_camera
from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.files.frame_writer import find_ffmpeg
from mimickit.video.files.names import beside, suffix_of
from mimickit.video.film_crew import FilmCrew
from mimickit.video.plan import clip_path, make_plan
from mimickit.video.production import Filmer, Wrap
from mimickit.video.retention import Shelf
from mimickit.video.snapshot import ActorPose, ActorSpec, FloatArray, plain
from mimickit.video.stage.gl import call_before_exit
from mimickit.video.still_camera import StillCamera
from mimickit.video.tape import EnvState, Tape
from mimickit.video.traces.film_job import FilmJob
from mimickit.video.traces.refilm import film_recorded
from mimickit.video.traces.trace import EnvCast, TraceHeader
from mimickit.video.wrap_up import finish_clips

_log = logging.getLogger("mimickit.video")


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

    def body_contacts(self, env_id: int) -> list[FloatArray]:
        """For each actor a copy of the force of the ground on its bodies (B, 3) N; empty where the engine can't say."""


class VideoRecorder(abc.ABC):
    """Films environments of an engine into one clip after the other.

    The engine calls before_step() and after_step() while is_recording; the environment may say where episodes
    begin and end and what is to be written into the picture. An episode of n steps has n + 1 frames. A
    failure of filming is logged once, ends the clip and raises nothing, unless the configuration is strict:
    then VideoError.

    A subclass says how moments become pictures (_make_filmer).
    """

    def __init__(self, engine: FilmedEngine, config: VideoConfig) -> None:
        self._engine = engine
        self._base_config = config
        self._config = config
        self._crew: FilmCrew | None = None
        self._context: dict[str, Any] = {}
        self._reported: set[str] = set()
        self._last_clips: list[Clip] = []
        self._recording = False
        self._ending: Future[Wrap] | None = None
        self._tape = Tape((), 1.0)
        self._notes: list[str] = []
        self._has_failed = False  # in the present recording
        self._jobs: list[FilmJob] = []
        self._shelf = Shelf()

    @abc.abstractmethod
    def _make_filmer(self) -> Filmer:
        """What turns this engine's moments into pictures; it opens nothing before it is asked for one."""

    # ------------------------------------------------------------------ life of a clip

    @property
    def is_recording(self) -> bool:
        """Whether steps are being filmed: from start() to stop(), or to the failure that ended the clip."""
        return self._recording

    @property
    def last_clip(self) -> Clip | None:
        """The last clip that was finished."""
        return self._last_clips[0] if self._last_clips else None

    @property
    def last_clips(self) -> list[Clip]:
        """All clips of the last recording that was finished."""
        return list(self._last_clips)

    @property
    def env_ids(self) -> tuple[int, ...]:
        """The environments that this recording shows, or the last one did."""
        return self._config.env_ids

    @property
    def env_id(self) -> int:
        """The first of them."""
        return self.env_ids[0]

    @property
    def wants_ghost(self) -> bool:
        """Whether set_ghost() would be seen or kept."""
        config = self._config
        return self._recording and (config.trace or config.shows_reference)

    def set_context(self, **facts: Any) -> None:
        """Facts for the names and side files of the next clips: name (what the film shows), model_file,
        samples, seed; anything else is kept under `context`.
        """
        self._context.update(plain(facts))

    def start(self, path: str | Path | None = None, **overrides: Any) -> None:
        """Begin a recording at the present state.

        Args:
            path: a file (.mp4), or a folder in which to name it; None is the configured folder. A file that
            exists is kept: the new one gets a number. overrides: fields of VideoConfig, for this recording.

        Raises ConfigError for what can't be meant (unknown fields, no such environment) and RuntimeError
        during another recording.
        """
        if self._recording or self._ending is not None:
            raise RuntimeError("a recording is under way; stop it before starting another")
        self._last_clips = []  # of a recording that fails there are none
        num_envs = self._engine.get_num_envs()
        config = self._base_config.updated(overrides, "video recording")
        if config.pick and not config.envs:
            config = replace(config, envs=tuple(range(num_envs)))
        self._config = config
        for env in config.env_ids:
            if env >= num_envs:
                raise ConfigError(f"video: env: expected less than num_envs, {num_envs}, found {env}")
        for camera in config.cameras:
            make_camera(camera, config=config)
        wanted = clip_path(path, config, self._context)
        self._tape, self._notes = Tape(config.env_ids, self._engine.get_timestep()), []
        self._has_failed = False
        try:
            for job in self._jobs:
                job.wait_for_trace()  # it is the same crew
            find_ffmpeg()
            is_live = not (config.defer or config.pick)
            self._plan = make_plan(config, self._header(), wanted, self._notes, films=is_live)
            for note in self._notes:
                self._report(note, logging.INFO)
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
        """End the recording and wait until its files are complete; returns the (first) clip, None if nothing is being
        filmed or filming has failed. A film that is put off is not waited for: pop_deferred() has its clips.

        A recording that was started and never stepped shows the present state in one frame.
        """
        if self._recording:
            self._end()
        if self._ending is None:
            return None
        if self._config.defer:
            self._jobs.append(FilmJob(self._ending, self._config, self._clip_of_trace()))
            self._has_ended()
            return None
        wrap = self._ending.result()  # if Ctrl-C comes here, calling stop() again waits on
        self._has_ended()
        self._last_clips = finish_clips(self._plan, wrap, self._tape.episodes(), self._notes)
        for note in wrap.notes:
            self._report(note, logging.INFO)
        if wrap.error is not None:
            self._fail(wrap.error)
        elif wrap.trace is not None and not self._plan.clips:
            self._film_picks(wrap.trace)
        self._shelf.add(self._last_clips, self._config)
        return self.last_clip

    def _has_ended(self) -> None:
        self._ending = None
        _ACTIVE.discard(self)

    def _clip_of_trace(self) -> Path:
        """The name of what is filmed from the trace alone; the trace's name is reserved, and so this one is free."""
        assert self._plan.trace is not None
        return beside(self._plan.trace, suffix_of(self._config.format))

    def _film_picks(self, trace: Path) -> None:
        """Film the picked episodes, now that they are known."""
        try:
            self._last_clips = film_recorded(trace, self._config, self._clip_of_trace())
        except (VideoError, ValueError, OSError) as error:
            self._fail(error)

    def pop_deferred(self, *, wait: bool = False) -> list[Clip]:
        """Clips that were filmed in processes of their own and are complete, each once; wait: for all of them."""
        done = [job for job in self._jobs if wait or job.is_done]
        self._jobs = [job for job in self._jobs if job not in done]
        clips: list[Clip] = []
        for job in done:
            try:
                found = job.result()
            except VideoError as error:
                self._has_failed = False
                self._fail(error)
                continue
            self._shelf.add(found, self._config)
            clips += found
        return [clip for clip in clips if clip.path.exists()]  # of several the older may be kept no longer

    def close(self) -> None:
        """Finish a clip that is being filmed and free the film crew; may be called twice."""
        try:
            self.stop()
            self.pop_deferred(wait=True)
        finally:
            if self._crew is not None:
                self._crew.close()
                self._crew = None

    def _header(self) -> TraceHeader:
        engine = self._engine
        casts = []
        for env in self._config.env_ids:
            counts = tuple(len(pos) for pos, _ in engine.body_poses(env))
            casts.append(EnvCast(env, tuple(engine.stage_actors(env)), counts))
        video = self._config.to_mapping()
        return TraceHeader(engine.get_timestep(), engine.get_name(), tuple(casts), dict(self._context), video)

    def still_camera(self) -> StillCamera:
        """A camera for single pictures, which leaves recordings alone; the caller closes it."""
        return StillCamera(self._engine, self._make_filmer())

    # ------------------------------------------------------------------ called by the engine

    def before_step(self) -> None:
        """The state before a step: filmed where a recording or an episode begins."""
        if self._recording and self._tape.wants_start:
            self._try(self._capture, True)

    def after_step(self) -> None:
        """The state after a step."""
        if self._recording:
            self._try(self._capture, False)

    # ------------------------------------------------------------------ called by the environment

    def begin_episode(self, info: Mapping[str, Any] | None = None, *, env_id: int | None = None) -> None:
        """A filmed environment (default: the first) was reset: the next frame shows its new state. The side file
        keeps info.
        """
        if self._recording:
            if len(self.env_ids) == 1:
                self._try(self._push)
            self._tape.begin_episode(self._env(env_id), info or {})

    def end_episode(
        self,
        length: int,
        episode_return: float,
        outcome: str,
        info: Mapping[str, Any] | None = None,
        *,
        env_id: int | None = None,
    ) -> None:
        """The episode ended with the last step: how many steps, its return, and how (fail, success, time)."""
        if self._recording:
            self._tape.end_episode(self._env(env_id), length, episode_return, outcome, info or {})

    def annotate(self, *, env_id: int | None = None, **values: Any) -> None:
        """Facts about the last frame (before an episode's first step: about its first): episode, episode_time
        (s), episode_return, reward, tracking_error (m), ...
        """
        if self._recording:
            self._tape.annotate(self._env(env_id), values)

    def set_ghost(self, poses: Sequence[tuple[Any, Any]], *, env_id: int | None = None) -> None:
        """Where the reference is at the last frame: (pos (B, 3) m, rot (B, 4)) of the first actor and any
        after it.
        """
        if self.wants_ghost:
            self._tape.set_ghost(self._env(env_id), poses)

    def _env(self, env_id: int | None) -> int:
        return self.env_id if env_id is None else env_id

    # ------------------------------------------------------------------ states

    def _capture(self, is_start: bool) -> None:
        """Take the present state: the start of an episode, or what a step has led to."""
        if self._crew is not None and self._crew.error is not None:
            raise self._crew.error
        if self._crew is not None and self._crew.film_error is not None:
            self._fail(self._crew.film_error)
        self._push()
        if not self._is_full:
            self._tape.see(self._read, is_start=is_start)

    @property
    def _is_full(self) -> bool:
        limit, plan = self._config.max_seconds, self._plan
        return limit is not None and plan.clock.count(self._tape.num_states + 1) > limit * plan.clock.fps + 1e-6

    def _read(self, env_id: int) -> EnvState:
        return self._engine.body_poses(env_id), self._engine.body_contacts(env_id)

    def _push(self) -> None:
        """Hand the last state to the film crew; nothing can be said of it any more."""
        if self._tape.pending is not None and self._crew is not None:
            self._crew.film(self._tape.pending)  # Ctrl-C in the wait for the crew: the state is still there
            self._tape.drop_pending()

    # ------------------------------------------------------------------ ends

    def _end(self) -> None:
        """Tell the crew that the recording is over."""
        try:
            assert self._crew is not None
            if self._tape.num_states == 0 and self._crew.error is None:
                self._capture(is_start=True)
            self._push()
            self._ending = self._crew.finish(self._facts_at_end())
            self._recording = False
        except Exception as error:
            self._give_up(error)

    def _facts_at_end(self) -> dict[str, Any]:
        return {"episodes": [vars(episode) for episode in self._tape.episodes()]}

    def _try(self, act: Any, *args: Any) -> None:
        try:
            act(*args)
        except Exception as error:  # whatever it is, it is no reason to end a training
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """End a recording that can't go on."""
        self._recording = False
        self._tape.drop_pending()
        _ACTIVE.discard(self)
        if self._crew is not None:
            try:
                self._crew.finish().result()
            except VideoError:
                self._crew = None  # its thread is gone; the next recording gets a new one
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        told = isinstance(error, (VideoError, ValueError))
        cause = str(error) if told else f"{type(error).__name__}: {error}"
        if not self._has_failed:  # what follows from the first failure is no news
            self._has_failed = True
            goes_on = "" if self._config.strict else "; the run goes on without this clip"
            self._report(f"filming failed{goes_on}: {cause}", logging.WARNING)
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
