"""Films snapshots with the Stage and a CameraRig: the way of every engine that has no camera of its own."""

import math
from dataclasses import replace

import numpy as np

from mimickit.video.camera_rig import CameraPose, CameraRig
from mimickit.video.config import GhostMode
from mimickit.video.film_crew import ClipPlan
from mimickit.video.snapshot import ActorPose, FloatArray, Snapshot
from mimickit.video.stage import Frame, Stage, camera_axes

_BESIDE = 0.75  # of the subject's height, between the subject and a ghost beside it
_MAX_REACH = 10.0  # m around the subject in which other actors have a shadow


class StageFilmer:
    """A Filmer. The stage is built at the first frame and kept for later clips of the same actors."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._key: tuple[object, ...] = ()

    def begin(self, plan: ClipPlan) -> None:
        self._plan = plan
        self._rig = CameraRig(plan.config)
        self._beside: FloatArray | None = None

    def shoot(self, snapshot: Snapshot) -> Frame:
        stage = self._stage_for(snapshot)
        camera = self._aim(snapshot, stage)
        if snapshot.ghosts and self._plan.config.ghost is GhostMode.BESIDE:
            snapshot, camera = self._set_beside(snapshot, camera, stage)
        stage.place(snapshot)
        return stage.render(camera)

    def close(self) -> None:
        if self._stage is not None:
            self._stage.close()
            self._stage = None

    def _stage_for(self, snapshot: Snapshot) -> Stage:
        plan = self._plan
        looks = (tuple(plan.actors), plan.width, plan.height, plan.config.quality)
        stage, num_ghosts = self._stage, len(snapshot.ghosts)
        if stage is None or self._key != looks or stage.num_ghosts < num_ghosts:
            self.close()
            stage = Stage(
                plan.actors, width=plan.width, height=plan.height, num_ghosts=num_ghosts,
                quality=plan.config.quality, reach=_reach(snapshot.poses),
            )  # fmt: skip
            self._stage, self._key = stage, looks
        return stage

    def _aim(self, snapshot: Snapshot, stage: Stage) -> CameraPose:
        pos, rot = snapshot.poses[0] if snapshot.poses else (np.zeros((1, 3)), np.array([[0.0, 0.0, 0.0, 1.0]]))
        return self._rig.pose(
            time=snapshot.time,
            root_pos=pos[0],
            root_rot=rot[0],
            size=stage.subject_size,
            is_cut=snapshot.is_cut,
        )

    def _set_beside(self, snapshot: Snapshot, camera: CameraPose, stage: Stage) -> tuple[Snapshot, CameraPose]:
        """Shift the ghosts to the right of the first picture, and the camera by half of it, so that both are
        in view.
        """
        if self._beside is None:
            forward, up = camera_axes(camera)
            right = np.cross(forward, up)
            right[2] = 0.0
            self._beside = right / max(math.hypot(*right[:2]), 1e-9) * _BESIDE * stage.subject_size.height
        ghosts = [(pos + self._beside, rot) for pos, rot in snapshot.ghosts]
        half = 0.5 * self._beside if self._plan.config.target is None else np.zeros(3)
        return replace(snapshot, ghosts=ghosts), replace(camera, eye=camera.eye + half, target=camera.target + half)


def _reach(poses: list[ActorPose]) -> float:
    roots = np.array([pos[0] for pos, _ in poses]).reshape(-1, 3)
    if len(roots) < 2:
        return 0.0
    distance = np.linalg.norm(roots[1:, :2] - roots[0, :2], axis=-1)
    return float(np.max(distance[distance <= _MAX_REACH], initial=0.0))
