"""Where the camera is: the rig, its modes, and how they follow."""

from mimickit.video.camera.shot import CameraPose as CameraPose
from mimickit.video.camera.shot import Shot as Shot
