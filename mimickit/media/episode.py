"""An episode as callbacks see it, and the media that they attach to it."""

from collections import UserDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.media.types import Media

UNFINISHED = "unfinished"


class EpisodeMedia(UserDict[str, Any]):
    """Name -> what is attached under it. A value is checked and becomes a file of the run folder when it is set; what
    is read is a list of Media. A value that can't be media raises MediaError, which names the key. Files of a value
    that is set anew are removed.
    """

    def __init__(self, keep: Callable[[str, Any], list[Media]], discard: Callable[[list[Media]], None]) -> None:
        """keep(name, value) makes the files; discard(media) removes them."""
        self._keep, self._discard = keep, discard
        super().__init__()

    def __setitem__(self, name: str, value: Any) -> None:
        kept = self._keep(name, value)  # first: it may hold what was there before
        self._discard(self.data.get(name, []))
        super().__setitem__(name, kept)

    def restore(self, name: str, items: list[Media]) -> None:
        """Have again what a checkpoint held."""
        self.data[name] = items

    def take(self) -> dict[str, list[Media]]:
        """All of it, to be delivered; none is left."""
        taken, self.data = self.data, {}
        return taken


@dataclass
class Episode:
    """An episode of one environment: under way, or ended."""

    env_index: int
    media: EpisodeMedia
    """What is delivered with it: episode.media["name"] = video, image, ..."""
    seed: int
    """Of the run."""
    samples: int
    """That training had taken when it was last told."""
    is_test: bool
    """Played in TEST mode."""
    motion: str | None = None
    """Name of the clip that is imitated, without its suffix."""
    length: int = 0
    """Control steps."""
    episode_return: float = 0.0
    """Sum of its rewards."""
    outcome: str = UNFINISHED
    """How it ended: fail, success, time, or unfinished."""
    reward: float = 0.0
    """Of the last step."""
    obs: NDArray[np.float32] | None = None
    """(O,) what the last step led to."""
    action: NDArray[np.float32] | None = None
    """(A,) of the last step."""
    info: dict[str, Any] = field(default_factory=dict)
    """What the environment told with the last step: numbers, and arrays where there are several."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else the environment says of it, e.g. motion_time (s)."""
    data: dict[str, Any] = field(default_factory=dict)
    """A callback's own notes, from one step to the next."""
