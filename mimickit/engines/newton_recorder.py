"""How the Newton engine films: its snapshots are ray-traced by Newton's own camera sensor, without GL and a display, on
the film crew's thread.
"""

from collections.abc import Sequence
from typing import Any

from mimickit.engines.video_recorder import FilmedEngine, VideoRecorder
from mimickit.video.config import VideoConfig
from mimickit.video.production import Filmer, FilmPlan
from mimickit.video.snapshot import ActorPose, ActorSpec
from mimickit.video.stage.stage_filmer import StageFilmer

_DRAWN_MARKS = {"contacts", "error", "key_bodies"}  # overlays that the Stage draws into the scene


class NewtonRecorder(VideoRecorder):
    """Films with the camera sensor, on the simulation's device."""

    def __init__(self, engine: FilmedEngine, config: VideoConfig, device: str) -> None:
        super().__init__(engine, config)
        self._device = device

    def _make_filmer(self) -> Filmer:
        return SensorFilmer(self._device)


class SensorFilmer(StageFilmer):
    """Cameras, tiles and ghosts are the StageFilmer's; the pictures are ray-traced. Marks in the scene, which the
    sensor can't draw, are left to the Stage.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def begin(self, plan: FilmPlan) -> None:
        super().begin(plan)
        self._marked = bool(_DRAWN_MARKS & set(plan.config.overlay))

    def _stage_for(self, actors: Sequence[ActorSpec], ghosts_of: list[int], poses: Sequence[ActorPose]) -> Any:
        if self._marked:
            return super()._stage_for(actors, ghosts_of, poses)
        key = (tuple(actors), self._looks, self._device)
        stage: Any = self._stages.get(key)
        if stage is None or list(stage.ghosts_of[: len(ghosts_of)]) != ghosts_of:
            if stage is not None:
                stage.close()
            width, height, quality = self._plan.width, self._plan.height, self._plan.config.quality
            stage = self._stage_class()(
                actors, width=width, height=height, device=self._device, ghosts_of=ghosts_of, quality=quality
            )
            self._stages[key] = stage
        return stage

    def _stage_class(self) -> Any:
        """What draws."""
        from mimickit.engines.newton.stage import NewtonStage

        return NewtonStage
