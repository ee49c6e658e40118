"""How the Isaac Lab engine films: its snapshots are drawn by Isaac Lab's own renderer, without GL and a display, on the
film crew's thread.
"""

from typing import Any

from mimickit.engines.newton_recorder import SensorFilmer
from mimickit.engines.video_recorder import FilmedEngine, VideoRecorder
from mimickit.video.config import VideoConfig
from mimickit.video.production import Filmer


class IsaacLabRecorder(VideoRecorder):
    """Films with Isaac Lab's Warp renderer, on the simulation's device."""

    def __init__(self, engine: FilmedEngine, config: VideoConfig, device: str) -> None:
        super().__init__(engine, config)
        self._device = device

    def _make_filmer(self) -> Filmer:
        return WarpFilmer(self._device)


class WarpFilmer(SensorFilmer):
    """As Newton's, with Isaac Lab's renderer."""

    def _stage_class(self) -> Any:
        from mimickit.engines.isaac_lab.stage import IsaacLabStage

        return IsaacLabStage
