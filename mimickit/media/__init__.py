"""Media in results, and callbacks that attach them."""

from mimickit.media.callbacks import Callback, Run
from mimickit.media.episode import Episode
from mimickit.media.types import MediaError
from mimickit.media.values import file, histogram, html, image, video

__all__ = ["Callback", "Episode", "MediaError", "Run", "file", "histogram", "html", "image", "video"]
