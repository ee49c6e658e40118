"""How the Newton engine films."""

from mimickit.engines.video_recorder import VideoRecorder
from mimickit.video.production import Filmer
from mimickit.video.stage.stage_filmer import StageFilmer


class NewtonRecorder(VideoRecorder):
    """Films with the Stage."""

    def _make_filmer(self) -> Filmer:
        return StageFilmer()
