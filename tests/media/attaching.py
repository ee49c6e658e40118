"""A callback that attaches every kind of media under the name of the motion; named on command lines by the tests."""

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

import cv2
import numpy as np
import wandb

from mimickit.media import Callback, file, histogram, html, image, video

COLORS = {"humanoid_walk": (220, 40, 40), "humanoid_run": (40, 40, 220)}
FPS = 20.0


class Attach(Callback):
    """Media of episodes in environments 0 and 1, whose sources are gone when the hook returns."""

    results: ClassVar[list[tuple[str, dict]]] = []  # of all runs of the process: what kind, and the result itself

    def __init__(self, note: str = "fell") -> None:
        self._note = note

    def on_episode_end(self, episode, env_index):
        if env_index > 1:
            return
        color, media, motion = COLORS[episode.motion], episode.media, episode.motion
        frames = np.full((12, 48, 64, 3), color, dtype=np.uint8)
        folder = Path(tempfile.mkdtemp())
        media[f"{motion}/clip"] = video(frames, fps=FPS)
        media[f"{motion}/picture"] = frames[0]
        media[f"{motion}/counts"] = histogram(episode.obs, bins=8)
        media[f"{motion}/page"] = html(f"<p>{episode.outcome} after {episode.length} steps</p>")
        (folder / "note.txt").write_text(f"{self._note}: {episode.episode_return}")
        media[f"{motion}/note"] = folder / "note.txt"
        clip = folder / "clip.mp4"
        writer = cv2.VideoWriter(str(clip), cv2.VideoWriter_fourcc(*"mp4v"), FPS, (64, 48))
        for frame in frames:
            writer.write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
        writer.release()
        media[f"{motion}/wandb_clip"] = wandb.Video(str(clip), caption="by W&B")
        shutil.rmtree(folder)

    def on_iteration_end(self, result):
        self.results.append(("train", result))

    def on_test_end(self, result):
        self.run.attach("test_picture", image(np.zeros((8, 8), np.uint8)))
        self.results.append(("test", result))


class Plain(Callback):
    """A file that lies in the run folder, once a test."""

    def on_test_end(self, result):
        (self.run.out_dir / "plain.txt").write_text("plain")
        self.run.attach("plain", file(self.run.out_dir / "plain.txt"))


class Broken(Callback):
    """Attaches what is no media."""

    def on_episode_end(self, episode, env_index):
        episode.media["mine"] = object()


class Raises(Callback):
    """Has a mistake in a hook that is called in the middle of training."""

    def on_iteration_end(self, result):
        raise ValueError("my mistake")


class Starts(Callback):
    """Attaches to an episode when it begins."""

    def on_episode_start(self, episode, env_index):
        episode.media["start"] = html(f"<p>{env_index}")
