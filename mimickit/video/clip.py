"""A finished clip and the side file (JSON) that says what it shows."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from mimickit.media.types import Frames, Video
from mimickit.video.frame_clock import FrameClock

UNFINISHED = "unfinished"
_BESIDE = ("trace", "poster", "replay")


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
    env_id: int = 0

    def in_frames(self, clock: FrameClock) -> "Episode":
        """This episode, whose frames are states, as a film with another clock shows it."""
        first, end = clock.count(self.first_frame), clock.count(self.first_frame + self.num_frames)
        return replace(self, first_frame=first, num_frames=end - first, info=dict(self.info))


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
    """Of each view, joined by commas."""
    env_ids: tuple[int, ...] = ()
    """All environments that it shows; env_id is the first."""
    trace: Path | None = None
    """From which it can be filmed again; beside it, as are poster and replay page."""
    poster: Path | None = None
    replay: Path | None = None
    episodes: tuple[Episode, ...] = ()
    seed: int | None = None
    model_file: str | None = None
    samples: int | None = None
    notes: tuple[str, ...] = ()
    context: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mean_return(self) -> float | None:
        """Of the episodes that ended; None if none did."""
        returns = [episode.episode_return for episode in self.episodes if episode.episode_return is not None]
        return sum(returns) / len(returns) if returns else None

    @property
    def duration(self) -> float:
        """Seconds."""
        return self.num_frames / self.fps

    def files(self) -> list[Path]:
        """The clip and all that lies beside it."""
        return [self.path, self.side_file, *(path for name in _BESIDE if (path := getattr(self, name)) is not None)]

    def to_media(self, caption: str = "") -> Video | Frames:
        """The clip as an entry of a result's media."""
        if self.path.is_dir():
            return Frames(path=self.path, caption=caption or self.path.name, fps=self.fps, num_frames=self.num_frames)
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
        for name in _BESIDE:
            if facts[name] is not None:
                facts[name] = Path(facts[name]).name
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
        """Read a side file; the clip is looked for beside it. Raises ValueError naming the file, OSError."""
        try:
            facts = json.loads(side_file.read_text(encoding="utf-8"))
            facts.pop("duration")
            for episode in facts["episodes"]:
                episode["episode_return"] = episode.pop("return")
            for name in ("path", *_BESIDE):
                if facts.get(name) is not None:
                    facts[name] = side_file.with_name(facts[name])
            facts["episodes"] = tuple(Episode(**episode) for episode in facts["episodes"])
            facts["notes"] = tuple(facts["notes"])
            facts["env_ids"] = tuple(facts.get("env_ids", ()))
            return cls(side_file=side_file, **facts)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{side_file}: not the side file of a clip: {error}") from error
