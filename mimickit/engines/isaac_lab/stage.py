"""Draws a Snapshot with Isaac Lab's Warp renderer: no Kit, no GL, no display, on the device of the simulation.

The scene is the Newton stage's: a model of its own, made only for filming. The simulation is neither read nor touched.
"""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp  # noqa: TID253  (this module is imported by the Isaac Lab recorder alone)
from isaaclab.renderers.camera_render_spec import CameraRenderSpec  # noqa: TID253
from isaaclab.sensors import CameraCfg  # noqa: TID253
from isaaclab.sim import PinholeCameraCfg  # noqa: TID253
from isaaclab.utils.warp import ProxyArray  # noqa: TID253
from isaaclab_newton.renderers import NewtonWarpRenderer, NewtonWarpRendererCfg
from newton.sensors import SensorTiledCamera  # noqa: TID253

from mimickit.engines.newton.bands import Bands
from mimickit.engines.newton.stage import NewtonStage
from mimickit.engines.newton.view import Band, View
from mimickit.video import palette
from mimickit.video.camera.camera_rig import CameraPose
from mimickit.video.stage.stage import Frame, camera_axes

_APERTURE = 36.0  # mm, of a camera whose focal length then follows from its field of view
_FINE = 2  # pixels drawn for one, each way, where edges are smooth


class FilmRenderer(NewtonWarpRenderer):
    """Isaac Lab's renderer on a model of its own, which is not the simulation's."""

    def __init__(self, cfg: Any, model: Any, state: Any) -> None:
        """cfg: a NewtonWarpRendererCfg; model and state: Newton's, of what is on film."""
        self.cfg, self._stage, self._seg_mapper = cfg, None, None
        self.backend = SimpleNamespace(model=model, state_0=state)
        self.newton_sensor = SensorTiledCamera(
            model,
            default_render_config=SensorTiledCamera.RenderConfig(
                enable_textures=cfg.enable_textures,
                enable_shadows=cfg.enable_shadows,
                enable_ambient_lighting=cfg.enable_ambient_lighting,
                enable_backface_culling=cfg.enable_backface_culling,
                max_distance=cfg.max_distance,
                render_order=SensorTiledCamera.RenderOrder.TILED,
                tile_width=cfg.tile_rendering_width,
                tile_height=cfg.tile_rendering_height,
            ),
        )
        direction = palette.KEY_DIRECTION / np.linalg.norm(palette.KEY_DIRECTION)
        self.newton_sensor.utils.create_default_light(enable_shadows=cfg.enable_shadows, direction=wp.vec3f(*direction))

    def render(self, render_data: Any) -> None:
        """Draw what state_0 holds and the model's tree of shapes is fitted to."""
        self._launch_render(render_data)


class IsaacLabStage(NewtonStage):
    """As NewtonStage, drawn by Isaac Lab's renderer."""

    def _make_sensor(self) -> FilmRenderer:
        cfg = NewtonWarpRendererCfg(enable_shadows=self._look.shadows, use_cuda_graph=False)
        return FilmRenderer(cfg, self._model, self._state)

    def _make_view(self, width: int, height: int) -> View:
        if self._look.samples > 1:
            return _FineView(self._sensor, width, height, self._bands)
        return RendererView(self._sensor, width, height, self._bands)


class RendererView(View):
    """Seen by Isaac Lab's renderer; each band is a camera of its own, whose axis meets the picture's middle."""

    def __init__(self, renderer: FilmRenderer, width: int, height: int, crew: Bands) -> None:
        super().__init__(width, height, renderer.backend.model.device, crew)
        self._renderer = renderer
        self._where = [wp.zeros(1, dtype=kind, device=self._device) for kind in (wp.vec3f, wp.quatf)]

    def _zoom(self, fov: float) -> None:
        for band in self._bands:
            band.camera = self._render_data(fov, band), self._intrinsics(fov, band.top)

    def _aim(self, camera: CameraPose) -> None:
        position, orientation = self._where
        position.assign(np.asarray(camera.eye, dtype=np.float32)[None])
        orientation.assign(_orientation(camera)[None])
        for band in self._bands:
            data, intrinsics = band.camera
            self._renderer.update_camera(data, position, orientation, intrinsics)

    def _see(self, band: Band) -> None:
        data, _ = band.camera
        self._renderer.render(data)

    def _render_data(self, fov: float, band: Band) -> Any:
        focal_length = _APERTURE / 2 / math.tan(math.radians(fov) / 2) * self._width / self._height
        lens = PinholeCameraCfg(
            focal_length=focal_length, horizontal_aperture=_APERTURE, clipping_range=(0.01, 1000.0)
        )
        cfg = CameraCfg(
            prim_path="/World/film", width=self._width, height=band.rows, spawn=lens,
            data_types=["rgba", "distance_to_image_plane"], renderer_cfg=self._renderer.cfg,
        )  # fmt: skip
        spec = CameraRenderSpec(cfg=cfg, device=str(self._device), num_instances=1, camera_prim_paths=(), view_count=1)
        data = self._renderer.create_render_data(spec)
        data.clear_color = 0  # nothing was hit: the sky comes later
        outputs = {"rgba": ProxyArray(band.color), "distance_to_image_plane": ProxyArray(band.depth)}
        self._renderer.set_outputs(data, outputs)
        return data

    def _intrinsics(self, fov: float, top: int) -> Any:
        focal = self._height / 2 / math.tan(math.radians(fov) / 2)  # pixels
        matrix = [[focal, 0.0, self._width / 2], [0.0, focal, self._height / 2 - top], [0.0, 0.0, 1.0]]
        return ProxyArray(wp.array(np.array([matrix], dtype=np.float32), dtype=wp.mat33f, device=self._device))


class _FineView(RendererView):
    """Draws larger pictures and makes them small, for smooth edges."""

    def __init__(self, renderer: FilmRenderer, width: int, height: int, crew: Bands) -> None:
        super().__init__(renderer, _FINE * width, _FINE * height, crew)
        self._size = (width, height)

    def shoot(self, camera: CameraPose) -> Frame:
        import cv2

        return np.asarray(cv2.resize(super().shoot(camera), self._size, interpolation=cv2.INTER_AREA))


def _orientation(camera: CameraPose) -> np.ndarray:
    """(4,) x y z w: Isaac Lab's camera looks along its +x with +z up."""
    forward, up = camera_axes(camera)
    axes = np.stack((forward, np.cross(up, forward), up), axis=1)
    return np.array([*wp.quat_from_matrix(wp.mat33f(axes.astype(np.float32)))], dtype=np.float32)
