"""Clips to log."""

import subprocess

import imageio_ffmpeg
import pytest

from mimickit.media.types import Video


@pytest.fixture(scope="session")
def make_clip():
    """A function that encodes a clip of one colour after the other, each for half of the time."""

    def make(path, *, seconds=1.0, fps=30, size="320x180", colors=("red", "blue")):
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [f"color=c={color}:s={size}:r={fps}:d={seconds / len(colors)}" for color in colors]
        inputs = [word for part in parts for word in ("-f", "lavfi", "-i", part)]
        graph = ["-filter_complex", f"concat=n={len(colors)}:v=1"]
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-y", "-loglevel", "error", *inputs, *graph]
        subprocess.run([*command, "-pix_fmt", "yuv420p", str(path)], check=True)
        width, height = (int(side) for side in size.split("x"))
        return Video(path=path, fps=float(fps), num_frames=round(seconds * fps), width=width, height=height)

    return make
