"""Single pictures of the present state, for programs that ask for frames; nothing is written."""

import queue
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mimickit.video.config import EnvLayout, VideoConfig, ViewLayout
from mimickit.video.frame_clock import FrameClock
from mimickit.video.layout import plan_layouts
from mimickit.video.overlay.overlay import Overlay
from mimickit.video.production import ClipPlan, Filmer, FilmPlan
from mimickit.video.snapshot import ActorPose, ActorSpec, FloatArray, Moment, Snapshot, copy_poses
from mimickit.video.stage.gl import call_before_exit
from mimickit.video.traces.trace import EnvCast, TraceHeader

_T = TypeVar("_T")


class SeenEngine(Protocol):
    """All that a still camera asks of an engine."""

    def get_name(self) -> str:
        """Name of the backend."""

    def get_timestep(self) -> float:
        """Length of a control step (s)."""

    def stage_actors(self, env_id: int) -> list[ActorSpec]:
        """Who is on stage in an environment."""

    def body_poses(self, env_id: int) -> list[ActorPose]:
        """For each actor copies of its bodies' positions (B, 3) m and rotations (B, 4)."""

    def body_contacts(self, env_id: int) -> list[FloatArray]:
        """For each actor a copy of the force of the ground on its bodies (B, 3) N."""


class StillCamera:
    """Takes one picture of each environment; a camera that follows its subject does so from picture to picture.

    It draws on a thread of its own, to which its GL context belongs.
    """

    def __init__(self, engine: SeenEngine, filmer: Filmer) -> None:
        self._engine, self._filmer = engine, filmer
        self._thread: _Worker | None = None
        self._wanted: tuple[Any, ...] = ()
        self._overlays: list[Overlay] = []

    def shoot(
        self,
        config: VideoConfig,
        env_ids: Sequence[int],
        times: Sequence[float],
        *,
        ghosts: Mapping[int, Sequence[tuple[Any, Any]]],
        facts: Mapping[int, Mapping[str, Any]],
    ) -> list[NDArray[np.uint8]]:
        """Pictures (height, width, 3) uint8 RGB of the engine's present state.

        Args:
            config: how it is filmed. env_ids: of what. times: since each began (s).
            ghosts: by environment, where its reference is. facts: by environment, what overlays know of it.

        Raises:
            VideoError: no GL, or what else drawing needs.
        """
        engine = self._engine
        moment = tuple(
            Snapshot(
                time=time, env_id=env_id, step=round(time / engine.get_timestep()), poses=engine.body_poses(env_id),
                ghosts=copy_poses(ghosts.get(env_id, ())), contacts=engine.body_contacts(env_id),
                annotations=dict(facts.get(env_id, {})),
            )
            for env_id, time in zip(env_ids, times, strict=True)
        )  # fmt: skip
        if self._thread is None:
            self._thread = _Worker()
            _OPEN.add(self)
        return self._thread.call(lambda: self._draw(config, tuple(env_ids), moment))

    def _draw(self, config: VideoConfig, env_ids: tuple[int, ...], moment: Moment) -> list[NDArray[np.uint8]]:
        if self._wanted != (config, env_ids):
            self._begin(config, env_ids)
            self._wanted = (config, env_ids)
        pictures = []
        for clip, overlay in zip(self._plan.clips, self._overlays, strict=True):
            picture = self._filmer.shoot(clip, moment).copy()
            overlay.draw(picture, moment)
            pictures.append(picture)
        return pictures

    def _begin(self, config: VideoConfig, env_ids: tuple[int, ...]) -> None:
        engine = self._engine
        config = replace(config, envs=env_ids, env_layout=EnvLayout.SEPARATE, pick=())
        if config.view_layout is ViewLayout.SEPARATE:
            config = replace(config, view_layout=ViewLayout.SPLIT)
        casts = []
        for env_id in env_ids:
            counts = tuple(len(pos) for pos, _ in engine.body_poses(env_id))
            casts.append(EnvCast(env_id, tuple(engine.stage_actors(env_id)), counts))
        dt, (width, height) = engine.get_timestep(), config.even_size
        header = TraceHeader(dt, engine.get_name(), tuple(casts), {}, config.to_mapping())
        clips = [ClipPlan(Path(f"picture{i}"), layout) for i, layout in enumerate(plan_layouts(config, env_ids))]
        self._plan = FilmPlan(config, header, FrameClock(dt, 1.0 / dt), width, height, clips)
        self._overlays = [Overlay(config, clip.layout.tiles, header.facts) for clip in clips]
        self._filmer.begin(self._plan)

    def close(self) -> None:
        """Free the GL context and end the thread; may be called twice."""
        thread, self._thread = self._thread, None
        self._wanted = ()
        if thread is not None:
            thread.call(self._filmer.close)
            thread.stop()


class _Worker:
    """A thread that does one thing after the other. Unlike an executor's it lives until the very end, when GL contexts
    are freed.
    """

    def __init__(self) -> None:
        self._tasks: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._tasks,), name="still-camera", daemon=True)
        self._thread.start()
        weakref.finalize(self, self._tasks.put, None).atexit = False

    def call(self, task: Callable[[], _T]) -> _T:
        """Do it on the thread; what it returns or raises."""
        future: Future[_T] = Future()
        self._tasks.put((task, future))
        return future.result()

    def stop(self) -> None:
        """End the thread."""
        self._tasks.put(None)
        self._thread.join()


def _work(tasks: "queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]") -> None:
    while (order := tasks.get()) is not None:
        task, future = order
        try:
            future.set_result(task())
        except BaseException as error:  # whoever asked for it hears of it
            future.set_exception(error)
        del order, task, future


_OPEN: "weakref.WeakSet[StillCamera]" = weakref.WeakSet()  # with a thread


def _close_all() -> None:
    for camera in list(_OPEN):
        camera.close()


call_before_exit(_close_all)
