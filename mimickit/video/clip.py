"""A finished clip and the side file (JSON) that says what it shows."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mimickit.media.types import Video

UNFINISHED = "unfinished"


@dataclass
class Episode:
    """An episode as far as the clip shows it."""

    first_frame: int
    """Index of its first frame."""
    num_frames: int = 0
    """An episode of n steps has n + 1 frames: the state at its start and after every step."""
    length: int = 0
    """Control steps."""
    episode_return: float | None = None
    """None for one that had not ended when the clip did, or that nobody reported."""
    outcome: str = UNFINISHED
    """How it ended: fail, success, time, or unfinished."""
    info: dict[str, Any] = field(default_factory=dict)
    """What else the environment said of it."""


@dataclass(frozen=True)
class Clip:
    """A complete, playable file."""

    path: Path
    side_file: Path
    fps: float
    num_frames: int
    width: int  # pixels
    height: int  # pixels
    engine: str
    env_id: int
    camera: str
    episodes: tuple[Episode, ...] = ()
    seed: int | None = None
    model_file: str | None = None
    samples: int | None = None
    notes: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.num_frames / self.fps

    def to_media(self, caption: str = "") -> Video:
        """The clip as an entry of a result's media."""
        return Video(
            path=self.path,
            caption=caption or self.path.stem,
            fps=self.fps,
            num_frames=self.num_frames,
            width=self.width,
            height=self.height,
            side_file=self.side_file,
        )

    def write_side_file(self) -> None:
        """Write the side file, whole or not at all."""
        facts = {**asdict(self), "path": self.path.name, "duration": self.duration}
        facts.pop("side_file")
        for episode in facts["episodes"]:
            episode["return"] = episode.pop("episode_return")
        temporary = self.side_file.with_name(self.side_file.name + ".tmp")
        try:
            temporary.write_text(json.dumps(facts, indent=2, default=str) + "\n", encoding="utf-8")
            temporary.replace(self.side_file)
        finally:
            temporary.unlink(missing_ok=True)

    @classmethod
    def load(cls, side_file: Path) -> "Clip":
        """Read a side file; the clip is looked for beside it. Raises ValueError naming the file."""
        try:
            facts = json.loads(side_file.read_text(encoding="utf-8"))
            facts.pop("duration")
            for episode in facts["episodes"]:
                episode["episode_return"] = episode.pop("return")
            facts["path"] = side_file.with_name(facts["path"])
            facts["episodes"] = tuple(Episode(**episode) for episode in facts["episodes"])
            facts["notes"] = tuple(facts["notes"])
            return cls(side_file=side_file, **facts)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{side_file}: not the side file of a clip: {error}") from error
