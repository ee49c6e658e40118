"""The recorder of an engine: its contract and life cycle, the same for all backends."""

import abc
import logging
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
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

    def get_name(self) -> str: ...
    def get_num_envs(self) -> int: ...
    def get_timestep(self) -> float: ...
    def stage_actors(self, env_id: int) -> list[ActorSpec]: ...
    def body_poses(self, env_id: int) -> list[ActorPose]: ...


class VideoRecorder(abc.ABC):
    """Films one environment of an engine into one clip after the other.

    The engine calls before_step() and after_step() while is_recording; the environment may say where episodes begin and
    end and what is to be written beside the picture. An episode of n steps has n + 1 frames. A failure of filming is logged
    once, ends the clip and raises nothing, unless the configuration is strict: then VideoError.

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
        self._pending: Snapshot | None = None

    @abc.abstractmethod
    def _make_filmer(self) -> Filmer:
        """What turns the snapshots of this engine into pictures; it may open nothing before it is asked for a picture."""

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
    def wants_ghost(self) -> bool:
        """Whether set_ghost() would be seen."""
        return self._recording and self._config.ghost is not GhostMode.OFF

    def set_context(self, **facts: Any) -> None:
        """Facts for the names and side files of this clip and later ones: name (what the film shows), model_file, samples,
        seed; anything else is kept under `context`.
        """
        self._context.update(plain(facts))

    def start(self, path: str | Path | None = None, **overrides: Any) -> None:
        """Begin a clip at the present state.

        path is a file (.mp4), or a folder in which to name it; None is the configured folder. An existing file is kept: the new
        one gets a number. overrides are fields of VideoConfig for this clip. Raises ConfigError for what can't be meant
        (unknown fields, no such environment) and RuntimeError during another recording.
        """
        if self._recording:
            raise RuntimeError("a recording is under way; stop it before starting another")
        self._config = config = self._base_config.updated(overrides, "video recording")
        if config.env >= self._engine.get_num_envs():
            raise ConfigError(
                f"video: env: expected less than the number of environments, {self._engine.get_num_envs()}, "
                f"found {config.env}"
            )
        make_camera(config.camera)
        wanted = self._choose_path(path)
        self._begin_clip()
        try:
            find_ffmpeg()
            width, height = config.even_size
            self._plan = ClipPlan(
                config=config, actors=self._engine.stage_actors(config.env), path=reserve_name(wanted),
                fps=self._choose_fps(), width=width, height=height,
            )  # fmt: skip
            if self._crew is None:
                self._crew = FilmCrew(self._make_filmer())
            self._crew.begin(self._plan)
        except Exception as error:
            self._fail(error)
            return
        self._recording = True
        _keep_until_exit(self)

    def stop(self) -> Clip | None:
        """End the clip and wait until its file is complete; None if nothing is being filmed or filming has failed.

        A clip that was started and never stepped shows the present state in one frame.
        """
        if self._crew is None or not (self._recording or self._ending):
            return None
        if self._ending is None:
            try:
                if self._ticks == 0:
                    self._capture(is_start=True)
                self._push()
                self._ending = self._crew.finish()
            except Exception as error:
                self._recording = False
                _ACTIVE.discard(self)
                self._fail(error)
                return None
        wrap = self._ending.result()  # if Ctrl-C comes here, calling stop() again waits on
        self._ending, self._recording = None, False
        _ACTIVE.discard(self)
        if wrap.error is not None:
            self._fail(wrap.error)
        return self._conclude(wrap)

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
        if self._recording and self._is_fresh:
            self._try_capture(is_start=True)

    def after_step(self) -> None:
        """The state after a step."""
        if self._recording:
            self._try_capture(is_start=False)

    # ------------------------------------------------------------------ called by the environment

    def begin_episode(self, info: Mapping[str, Any] | None = None) -> None:
        """The filmed environment was reset: the next frame shows its new state. info goes to the side file."""
        if not self._recording:
            return
        self._push_or_fail()
        facts = plain(info or {})
        self._annotations = {"episode": facts.get("episode", len(self._episodes)), "episode_return": 0.0}
        self._is_fresh = True
        self._open_episode(facts)

    def end_episode(
        self, length: int, episode_return: float, outcome: str, info: Mapping[str, Any] | None = None
    ) -> None:
        """The episode ended with the last step: after length steps, with a return, and how (fail, success, time)."""
        if self._recording and self._episodes:
            episode = self._episodes[-1]
            episode.length, episode.episode_return, episode.outcome = (
                int(length),
                float(episode_return),
                str(outcome),
            )
            episode.info.update(plain(info or {}))

    def annotate(self, **values: Any) -> None:
        """Facts about the last frame, or before an episode's first step about its first: episode, episode_time (s),
        episode_return, reward, ...
        """
        if self._recording:
            target = self._annotations if self._pending is None else self._pending.annotations
            target.update(plain(values))

    def set_ghost(self, poses: Sequence[tuple[Any, Any]]) -> None:
        """Where the reference is at the last frame: (pos (B, 3) m, rot (B, 4)) for the first actor, and any that follow."""
        if self.wants_ghost:
            self._ghost = copy_poses(poses)
            if self._pending is not None:
                self._pending.ghosts = self._ghost

    # ------------------------------------------------------------------ frames

    def _begin_clip(self) -> None:
        self._pending = None
        self._episodes: list[Episode] = []
        self._ghost: list[ActorPose] = []
        self._annotations: dict[str, Any] = {}
        self._is_fresh = True
        self._is_cut = True
        self._ticks = 0  # states seen: an episode of n steps has n + 1
        self._num_frames = 0  # of them kept
        self._episode_ticks = 0
        self._notes: list[str] = []

    def _open_episode(self, info: dict[str, Any]) -> None:
        if self._episodes and self._episodes[-1].num_frames == 0:
            self._episodes.pop()
        self._episodes.append(Episode(first_frame=self._num_frames, info=info))

    def _try_capture(self, *, is_start: bool) -> None:
        crew = self._crew
        try:
            if crew is not None and crew.error is not None:
                raise crew.error
            self._capture(is_start=is_start)
        except Exception as error:
            self._give_up(error)

    def _capture(self, *, is_start: bool) -> None:
        self._push()
        if is_start:
            self._is_fresh, self._is_cut, self._episode_ticks = False, True, 0
            if not self._episodes:
                self._open_episode({})
        else:
            self._episode_ticks += 1
            self._episodes[-1].length = self._episode_ticks
        keep = self._keeps(self._ticks)
        tick, self._ticks = self._ticks, self._ticks + 1
        if not keep:
            return
        dt = self._engine.get_timestep()
        self._pending = Snapshot(
            time=tick * dt,
            env_id=self._config.env,
            step=tick,
            poses=copy_poses(self._engine.body_poses(self._config.env)),
            ghosts=self._ghost,
            is_cut=self._is_cut,
            annotations={**self._annotations, "episode_time": self._episode_ticks * dt},
        )
        self._is_cut = False
        self._num_frames += 1
        self._episodes[-1].num_frames += 1

    def _keeps(self, tick: int) -> bool:
        """Whether a state becomes a frame: all of them at the control rate, evenly spread ones at a lower rate."""
        ratio = self._plan.fps * self._engine.get_timestep()
        return tick == 0 or int(tick * ratio + _RATE_TOLERANCE) > int((tick - 1) * ratio + _RATE_TOLERANCE)

    def _push(self) -> None:
        if self._pending is not None and self._crew is not None:
            self._crew.film(self._pending)
            self._pending = None

    def _push_or_fail(self) -> None:
        try:
            self._push()
        except Exception as error:
            self._give_up(error)

    # ------------------------------------------------------------------ choices

    def _choose_fps(self) -> float:
        rate = 1.0 / self._engine.get_timestep()
        fps = self._config.fps
        if fps is not None and fps > rate + _RATE_TOLERANCE:
            self._notes.append(f"fps: {fps:g} asked for, {rate:g} filmed: there is one state a control step")
        if (self._config.width, self._config.height) != self._config.even_size:
            width, height = self._config.even_size
            self._notes.append(f"size: {self._config.width}x{self._config.height} asked for, {width}x{height} filmed: "
                               "players of H.264 need even numbers")  # fmt: skip
        for note in self._notes:
            self._report(note, logging.INFO)
        return rate if fps is None else min(fps, rate)

    def _choose_path(self, path: str | Path | None) -> Path:
        if path is not None and Path(path).suffix.lower() == _SUFFIX:
            return Path(path)
        if path is not None and Path(path).suffix and not Path(path).is_dir():
            raise ConfigError(
                f"video recording: path: expected a name that ends in {_SUFFIX} or a folder, found {path}"
            )
        folder = Path(path) if path is not None else self._config.out_dir or Path("videos")
        name = re.sub(r"[^\w.+-]+", "_", str(self._context.get("name") or "film"))
        samples = self._context.get("samples")
        return folder / (f"{name}{_SUFFIX}" if samples is None else f"{name}_{int(samples):012d}{_SUFFIX}")

    # ------------------------------------------------------------------ ends

    def _conclude(self, wrap: Wrap) -> Clip | None:
        if wrap.path is None:
            return None
        facts = dict(self._context)
        facts.pop("name", None)
        clip = Clip(
            path=wrap.path,
            side_file=wrap.path.with_suffix(".json"),
            fps=self._plan.fps,
            num_frames=wrap.num_frames,
            width=self._plan.width,
            height=self._plan.height,
            engine=str(facts.pop("engine", self._engine.get_name())),
            env_id=self._config.env,
            camera=self._config.camera,
            episodes=tuple(episode for episode in self._episodes if episode.num_frames),
            seed=facts.pop("seed", None),
            model_file=None if (model := facts.pop("model_file", None)) is None else str(model),
            samples=facts.pop("samples", None),
            notes=tuple(self._notes),
            context=facts,
        )
        self._last_clip = clip
        try:
            clip.write_side_file()
        except OSError as error:
            self._fail(VideoError(f"{clip.side_file}: can't be written: {error.strerror or error}"))
        return clip

    def _give_up(self, error: Exception) -> None:
        """End a clip that can't go on."""
        self._recording = False
        self._pending = None
        _ACTIVE.discard(self)
        if self._crew is not None:
            try:
                self._crew.finish().result()
            except VideoError:
                self._crew = None  # its thread is gone; the next clip gets a new one
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._report(
            f"filming failed, the run goes on without this clip: {_describe(error)}", logging.WARNING
        )
        _log.debug("the failure in full", exc_info=error)
        if self._config.strict:
            raise error if isinstance(error, VideoError) else VideoError(_describe(error)) from error

    def _report(self, text: str, level: int) -> None:
        if text not in self._reported:
            self._reported.add(text)
            _log.log(level, text)


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, (VideoError, ValueError)) else f"{type(error).__name__}: {error}"


_ACTIVE: set[VideoRecorder] = (
    set()
)  # recorders with a clip under way: they are finished when the interpreter ends
_exit_hooked = False


def _keep_until_exit(recorder: VideoRecorder) -> None:
    global _exit_hooked
    if not _exit_hooked:
        _exit_hooked = True
        call_before_exit(_finish_active)
    _ACTIVE.add(recorder)


def _finish_active() -> None:
    for recorder in list(_ACTIVE):
        try:
            recorder.stop()
        except VideoError:  # strict, at the very end: it was logged, and there is nobody left to catch it
            _ACTIVE.discard(recorder)
