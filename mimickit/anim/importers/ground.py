"""How deep a character's shapes reach, pose by pose."""

import mujoco
import numpy as np
import torch
from torch import Tensor

from mimickit.anim.char_file import load_spec
from mimickit.anim.char_model import CharModel
from mimickit.anim.importers.poses import Poses
from mimickit.util.rotations import quat_rotate

_SIGNS = torch.tensor([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


def lowest_points(poses: Poses, char: CharModel, bodies: list[str] | None = None) -> Tensor:
    """Height (T,) m of the lowest point of the colliding spheres, capsules, boxes of all or some bodies."""
    pos, rot = char.forward_kinematics(poses.root_pos.float(), poses.rots[:, 0].float(), poses.rots[:, 1:].float())
    wanted = range(char.num_bodies) if bodies is None else [char.body_id(name) for name in bodies]
    lows = [
        (pos[:, b, 2:] + quat_rotate(rot[:, b, None], points)[..., 2] - radius).amin(-1)
        for b, points, radius in _support_points(char)
        if b in wanted
    ]
    return torch.stack(lows).amin(0).to(poses.root_pos.dtype)


def _support_points(char: CharModel) -> list[tuple[int, Tensor, float]]:
    """Body, points (P, 3) in its frame, radius; a shape is the hull of balls about its points."""
    model = load_spec(char.info.path).compile()
    shapes = []
    for g in range(model.ngeom):
        if not (model.geom_contype[g] or model.geom_conaffinity[g]):
            continue
        size = model.geom_size[g]
        match mujoco.mjtGeom(model.geom_type[g]):
            case mujoco.mjtGeom.mjGEOM_SPHERE:
                local, radius = np.zeros((1, 3)), size[0]
            case mujoco.mjtGeom.mjGEOM_CAPSULE:
                local, radius = np.array([[0, 0, -size[1]], [0, 0, size[1]]]), size[0]
            case mujoco.mjtGeom.mjGEOM_BOX:
                local, radius = _SIGNS.numpy() * size, 0.0
            case _:
                continue
        rot = torch.tensor(np.roll(model.geom_quat[g], -1), dtype=torch.float32)
        points = quat_rotate(rot, torch.tensor(local, dtype=torch.float32))
        points = points + torch.tensor(model.geom_pos[g], dtype=torch.float32)
        shapes.append((int(model.geom_bodyid[g]) - 1, points, float(radius)))
    return shapes
