"""Pictures of one size, as a camera sensor sees them and with the sky and the haze that it doesn't know."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import warp as wp  # noqa: TID253  (this module is imported by the Newton and Isaac Lab recorders alone)

from mimickit.engines.newton.bands import Bands
from mimickit.video import palette
from mimickit.video.camera.camera_rig import CameraPose
from mimickit.video.snapshot import FloatArray
from mimickit.video.stage.stage import Frame, camera_axes

_HAZE_FROM, _HAZE_TO = wp.constant(8.0), wp.constant(40.0)  # m from the camera, over which the ground dissolves
_HORIZON = 0.045  # rise of a ray up to which the sky has the ground's colour in it
_SKY_STEPS = wp.constant(2048)  # of the sky's colours


@dataclass
class Band:
    """Rows of a picture, and their parts of its buffers."""

    top: int
    rows: int
    color: Any  # (1, rows, W) uint32
    depth: Any  # (1, rows, W) float32, m, forward
    picture: Any  # (rows, W, 3) uint8
    camera: Any = None  # what the view keeps for it


class View(ABC):
    """The buffers of pictures of one size. A view says how a sensor is aimed and how it sees a band."""

    def __init__(self, width: int, height: int, device: Any, crew: Bands) -> None:
        self._width, self._height, self._device, self._crew = width, height, device, crew
        self._color = wp.zeros((1, height, width), dtype=wp.uint32, device=device)
        self._depth = wp.zeros((1, height, width), dtype=wp.float32, device=device)
        self._picture = wp.empty((height, width, 3), dtype=wp.uint8, device=device)
        self._sky = wp.array(_sky_colors(), dtype=wp.vec3f, device=device)
        self._bands = [self._band(top, rows) for top, rows in crew.of(height)]
        self._fov = 0.0
        self._is_new = True

    def shoot(self, camera: CameraPose) -> Frame:
        """(H, W, 3), the view's own, written over by the next call."""
        if camera.fov != self._fov:
            self._zoom(camera.fov)
            self._fov = camera.fov
        self._aim(camera)
        sight = _sight_of(camera)
        self._crew.draw([partial(self._draw, band, sight) for band in self._bands], at_once=not self._is_new)
        self._is_new = False
        return np.asarray(self._picture.numpy())

    @abstractmethod
    def _zoom(self, fov: float) -> None:
        """The field of view has changed (degrees, from the top of the picture to the bottom)."""

    @abstractmethod
    def _aim(self, camera: CameraPose) -> None:
        """The camera has moved."""

    @abstractmethod
    def _see(self, band: Band) -> None:
        """Write colours, alpha 0 where nothing was hit, and depths of a band. Called on several threads."""

    def _band(self, top: int, rows: int) -> Band:
        end, shape = top + rows, (1, rows, self._width)
        color, depth = self._color[0][top:end].reshape(shape), self._depth[0][top:end].reshape(shape)
        return Band(top, rows, color, depth, self._picture[top:end])

    def _draw(self, band: Band, sight: Any) -> None:
        self._see(band)
        wp.launch(
            _finish, dim=(band.rows, self._width),
            inputs=[band.color, band.depth, sight, self._sky, band.top, self._height],
            outputs=[band.picture], device=self._device,
        )  # fmt: skip


class SensorView(View):
    """Seen by Newton's SensorCamera."""

    def __init__(self, sensor: Any, state: Any, width: int, height: int, crew: Bands, *, samples: int) -> None:
        """sensor: a SensorCamera; state: where its model's bodies are; samples: rays a pixel."""
        super().__init__(width, height, sensor.device, crew)
        self._sensor, self._state, self._samples = sensor, state, samples
        self._world = wp.zeros(1, dtype=wp.int32, device=self._device)
        self._where = wp.zeros(1, dtype=wp.transformf, device=self._device)

    def _zoom(self, fov: float) -> None:
        rays = self._sensor.compute_camera_rays_pinhole(
            self._width, self._height, camera_fov=math.radians(fov), sample_count=self._samples, device=self._device
        )
        for band in self._bands:
            band.camera = rays[band.top : band.top + band.rows]

    def _aim(self, camera: CameraPose) -> None:
        self._where.assign([camera_transform(camera)])

    def _see(self, band: Band) -> None:
        self._sensor.update(
            self._state, self._where, band.camera, color_image=band.color, forward_depth_image=band.depth,
            world_indices=self._world, sync_deformables=False,
        )  # fmt: skip


def camera_transform(camera: CameraPose) -> Any:
    """Of a sensor, which looks along its -z with +y up."""
    forward, up = camera_axes(camera)
    axes = np.stack((np.cross(forward, up), up, -forward), axis=1)
    return wp.transformf(
        wp.vec3f(*(float(v) for v in camera.eye)), wp.quat_from_matrix(wp.mat33f(axes.astype(np.float32)))
    )


@wp.struct
class _Sight:
    """Where the camera looks."""

    look_rise: wp.float32  # vertical part of the unit vector forward
    up_rise: wp.float32  # and of the picture's up
    reach: wp.float32  # tangent of half the field of view


def _sight_of(camera: CameraPose) -> Any:
    forward, up = camera_axes(camera)
    sight = _Sight()
    sight.look_rise, sight.up_rise = float(forward[2]), float(up[2])
    sight.reach = math.tan(math.radians(camera.fov) / 2)
    return sight


def _sky_colors() -> FloatArray:
    """(_SKY_STEPS, 3) in 0..255: what the sky looks like from level to straight up."""
    rise = np.linspace(0.0, 1.0, _SKY_STEPS)[:, None]
    haze, zenith, floor = (np.asarray(c) for c in (palette.HAZE, palette.ZENITH, palette.distant_floor()))
    sky = haze + (zenith - haze) * rise**0.65
    return 255.0 * (floor + (sky - floor) * np.clip(rise / _HORIZON, 0.0, 1.0) ** 0.8)


@wp.kernel
def _finish(
    color: wp.array3d[wp.uint32],
    depth: wp.array3d[wp.float32],
    sight: _Sight,
    sky: wp.array[wp.vec3f],
    top: int,
    rows: int,
    out: wp.array3d[wp.uint8],
) -> None:
    """Sky where nothing was hit, and haze before what is far, in a band from row `top` of a picture of so many rows."""
    y, x = wp.tid()
    packed = color[0, y, x]
    height, width = float(rows), float(color.shape[2])
    down = (1.0 - 2.0 * (float(top + y) + 0.5) / height) * sight.reach
    across = (2.0 * (float(x) + 0.5) / width - 1.0) * sight.reach * width / height
    length = wp.sqrt(1.0 + down * down + across * across)
    hit = float((packed >> wp.uint32(24)) & wp.uint32(255)) / 255.0
    seen = hit * (1.0 - wp.smoothstep(_HAZE_FROM, _HAZE_TO, depth[0, y, x] * length))
    rise = wp.clamp((sight.look_rise + down * sight.up_rise) / length, 0.0, 1.0)  # the camera's right is level
    behind = (1.0 - seen) * sky[int(rise * float(_SKY_STEPS - 1) + 0.5)]
    out[y, x, 0] = wp.uint8(seen * float(packed & wp.uint32(255)) + behind[0] + 0.5)
    out[y, x, 1] = wp.uint8(seen * float((packed >> wp.uint32(8)) & wp.uint32(255)) + behind[1] + 0.5)
    out[y, x, 2] = wp.uint8(seen * float((packed >> wp.uint32(16)) & wp.uint32(255)) + behind[2] + 0.5)
