"""How the MuJoCo engine films: its snapshots are drawn on the Stage, beside the simulation, on the film
crew's thread.
"""

from mimickit.engines.video_recorder import VideoRecorder
from mimickit.video.production import Filmer
from mimickit.video.stage.stage_filmer import StageFilmer


class MujocoRecorder(VideoRecorder):
    """Films with the Stage."""

    def _make_filmer(self) -> Filmer:
        return StageFilmer()
