"""How the Isaac Lab engine films: its snapshots are drawn by Isaac Lab's own renderer, without GL and a display, on the
film crew's thread.
"""

from typing import Any

from mimickit.engines.newton_recorder import NewtonRecorder, SensorFilmer
from mimickit.video.production import Filmer


class IsaacLabRecorder(NewtonRecorder):
    """Films with Isaac Lab's Warp renderer, on the simulation's device."""

    def _make_filmer(self) -> Filmer:
        return WarpFilmer(self._device)


class WarpFilmer(SensorFilmer):
    """As Newton's, with Isaac Lab's renderer."""

    def _stage_class(self) -> Any:
        from mimickit.engines.isaac_lab.stage import IsaacLabStage

        return IsaacLabStage
