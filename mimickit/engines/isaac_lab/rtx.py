"""Films inside Kit with the RTX renderer: a camera of our own in the live stage, read through a replicator annotator.
Written from Isaac Lab's and Kit's documentation and sources, and not run.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mimickit.video.camera.camera_rig import CameraPose
from mimickit.video.errors import VideoError
from mimickit.video.layout import Rect
from mimickit.video.snapshot import ActorPose, ActorSpec, Snapshot
from mimickit.video.stage.stage import Frame, camera_axes
from mimickit.video.stage.stage_filmer import StageFilmer
from mimickit.video.stage.stage_markers import NO_MARKS, Marks
from mimickit.video.stage.stage_scene import build_scene

_CAMERA, _LIGHTS = "/World/mimickit_camera", "/World/mimickit_lights"
_APERTURE = 20.0  # mm, height of the film
_WARM_UP = 120  # renders after which a camera that has given nothing will not give anything
_SETTLE = 2  # renders after a move, until nothing of the last picture is left in it
_ENV = "/World/envs/env_{}"


class RtxFilmer(StageFilmer):
    """Cameras and tiles are the StageFilmer's; the picture is the live stage's. What the live stage can't show (ghosts,
    marks, several environments on one ground) is left to the Stage.
    """

    def __init__(self, sim: Any, origins: np.ndarray) -> None:
        """sim: the SimulationContext; origins: (num_envs, 3) m of the environments."""
        super().__init__()
        self._sim, self._origins = sim, origins

    def _stage_for(self, actors: Sequence[ActorSpec], ghosts_of: list[int], poses: Sequence[ActorPose]) -> Any:
        casts = {tuple(cast.actors): cast.env_id for cast in self._plan.header.casts}
        if ghosts_of or tuple(actors) not in casts:
            return super()._stage_for(actors, ghosts_of, poses)
        key = (tuple(actors), self._looks, "rtx")
        stages: dict[Any, Any] = self._stages
        if key not in stages:
            stages[key] = RtxStage(self._sim, self._origins, actors, casts[tuple(actors)], self._plan)
        return stages[key]


class RtxStage:
    """The live stage, seen by a camera that is not the viewer's. Frames are (height, width, 3) uint8 RGB."""

    ghosts_of: tuple[int, ...] = ()

    def __init__(self, sim: Any, origins: np.ndarray, actors: Sequence[ActorSpec], env_id: int, plan: Any) -> None:
        width, height, quality = plan.width, plan.height, plan.config.quality
        scene = build_scene(actors, quality=quality, width=width, height=height)
        self.subject_size, self.subject_bodies = scene.subject, scene.subject_bodies
        self._sim, self._origin = sim, np.asarray(origins[env_id], dtype=np.float64)
        self._frame = np.empty((height, width, 3), dtype=np.uint8)
        self._annotators: dict[tuple[int, int], Any] = {}
        self._dress(len(origins), env_id)

    def _dress(self, num_envs: int, env_id: int) -> None:
        """A camera, light, and no environment in sight but the filmed one."""
        import omni.usd
        from pxr import UsdGeom, UsdLux

        stage = omni.usd.get_context().get_stage()
        self._camera = UsdGeom.Camera.Define(stage, _CAMERA)
        self._camera.CreateVerticalApertureAttr(_APERTURE)
        self._camera.CreateClippingRangeAttr((0.01, 1000.0))
        self._place = UsdGeom.Xformable(self._camera).AddTransformOp()
        UsdLux.DomeLight.Define(stage, f"{_LIGHTS}/sky").CreateIntensityAttr(1000.0)
        UsdLux.DistantLight.Define(stage, f"{_LIGHTS}/key").CreateIntensityAttr(1500.0)
        for env in range(num_envs):
            prim = UsdGeom.Imageable(stage.GetPrimAtPath(_ENV.format(env)))
            prim.MakeVisible() if env == env_id else prim.MakeInvisible()

    def place(self, snapshot: Snapshot, marks: Marks = NO_MARKS) -> None:
        """Everything stands where the simulation has it."""

    def draw(self, camera: CameraPose, rect: Rect) -> None:
        """Draw the live stage into a part of the picture."""
        self._aim(camera, rect)
        annotator = self._annotator(rect)
        for _ in range(_SETTLE):
            self._sim.render()
        for _ in range(_WARM_UP):
            data = np.asarray(annotator.get_data())
            if data.size == rect.width * rect.height * 4:
                break
            self._sim.render()
        else:
            raise VideoError(f"the RTX camera gave no picture after {_WARM_UP} renders")
        rows, columns = slice(rect.top, rect.top + rect.height), slice(rect.left, rect.left + rect.width)
        self._frame[rows, columns] = data.reshape(rect.height, rect.width, 4)[..., :3]

    def read(self) -> Frame:
        """The picture that was drawn; written over by the next call."""
        return self._frame

    def close(self) -> None:
        """Let the annotators go."""
        for annotator in self._annotators.values():
            annotator.detach()
        self._annotators.clear()

    def _aim(self, camera: CameraPose, rect: Rect) -> None:
        from pxr import Gf

        forward, up = camera_axes(camera)
        axes = np.eye(4)
        axes[:3, :3] = np.stack((np.cross(forward, up), up, -forward))  # USD's cameras look along -z; rows are axes
        axes[3, :3] = np.asarray(camera.eye) + self._origin
        self._place.Set(Gf.Matrix4d(axes.tolist()))
        self._camera.CreateFocalLengthAttr(_APERTURE / 2 / math.tan(math.radians(camera.fov) / 2))
        self._camera.CreateHorizontalApertureAttr(_APERTURE * rect.width / rect.height)

    def _annotator(self, rect: Rect) -> Any:
        size = (rect.width, rect.height)
        if size not in self._annotators:
            import omni.replicator.core as rep

            annotator = rep.AnnotatorRegistry.get_annotator("rgb", device="cpu")
            annotator.attach([rep.create.render_product(_CAMERA, size)])
            self._annotators[size] = annotator
        return self._annotators[size]
