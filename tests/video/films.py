"""Looking into finished files, and a small character to film."""

import re
import subprocess
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from mimickit.video.files.frame_writer import find_ffmpeg
from mimickit.video.snapshot import ActorPose, FloatArray, Snapshot

# a file without light, ground, sky and colour, with joints, a motor, a keyframe and a light that must not get on stage
PENDULUM = """
<mujoco model="pendulum">
  <default><geom density="500"/></default>
  <worldbody>
    <light name="own" pos="0 0 3"/>
    <body name="base" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="base" type="box" size="0.12 0.12 0.12"/>
      <body name="arm" pos="0 0 -0.12">
        <joint name="swing" axis="0 1 0"/>
        <geom name="arm" type="capsule" fromto="0 0 0 0 0 -0.6" size="0.05"/>
        <body name="bob" pos="0.1 0 -0.7" euler="0 0 30">
          <geom name="bob" type="sphere" size="0.13" pos="0 0.02 0"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="swing"/></actuator>
  <sensor><jointpos joint="swing"/></sensor>
  <keyframe><key name="home" qpos="0 0 1 1 0 0 0 0.3"/></keyframe>
</mujoco>
"""
PENDULUM_BODIES = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 0.88], [0.1, 0.0, 0.18]])


def write_pendulum(folder: Path, name: str = "pendulum") -> Path:
    path = folder / f"{name}.xml"
    path.write_text(PENDULUM)
    return path


def pendulum_pose(x: float = 0.0, y: float = 0.0, z: float = 0.0) -> ActorPose:
    """Hanging straight down, its base at (x, y, 1 + z)."""
    return PENDULUM_BODIES + np.array([x, y, z]), np.tile([0.0, 0.0, 0.0, 1.0], (3, 1))


def snapshot(*poses: ActorPose, ghosts: tuple[ActorPose, ...] = (), time: float = 0.0) -> Snapshot:
    return Snapshot(time=time, env_id=0, step=0, poses=list(poses), ghosts=list(ghosts))


def read_frames(path: Path) -> list[NDArray[np.uint8]]:
    """All frames of a film, (H, W, 3) RGB."""
    capture, frames = cv2.VideoCapture(str(path)), []
    while True:
        good, frame = capture.read()
        if not good:
            capture.release()
            return frames
        frames.append(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB))


def describe(path: Path) -> str:
    """What ffmpeg says of a file."""
    command = [find_ffmpeg(), "-hide_banner", "-i", str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def duration(path: Path) -> float:
    """Seconds, as the container says."""
    found = re.search(r"Duration: (\d+):(\d+):([\d.]+)", describe(path))
    assert found, describe(path)
    return int(found[1]) * 3600 + int(found[2]) * 60 + float(found[3])


def boxes(path: Path) -> list[str]:
    """Kinds of the top-level boxes of an MP4, in order."""
    data, at, kinds = path.read_bytes(), 0, []
    while at + 8 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        kinds.append(data[at + 4 : at + 8].decode("latin1"))
        at += size if size >= 8 else len(data)
    return kinds


def center_of(mask: NDArray[np.bool_]) -> FloatArray:
    """(2,) mean column and row of what is true."""
    rows, columns = np.nonzero(mask)
    return np.array([columns.mean(), rows.mean()])
