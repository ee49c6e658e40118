"""MuJoCo's own model of a character, with the ball joints that the hinge groups stand for."""

from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import torch

from mimickit.anim.char_file import load_spec
from mimickit.anim.char_model import CharModel
from mimickit.anim.mjcf import JointKind


def ball_model(path: Path, char: CharModel) -> Any:
    """Compiled model in which every hinge group is one native ball joint."""
    spec = load_spec(path)
    for joint in char.joints:
        if joint.kind == JointKind.BALL and len(joint.source_joints) == 3:
            body = spec.body(char.info.bodies[joint.body].name)
            for hinge in list(body.joints):
                spec.delete(hinge)
            body.add_joint(name=joint.name, type=mujoco.mjtJoint.mjJNT_BALL, pos=joint.pos, limited=False)
    return spec.compile()


def set_pose(model: Any, data: Any, char: CharModel, root: torch.Tensor, joint_rot: torch.Tensor) -> None:
    """Put a pose (root 7: position, quaternion x y z w; joint_rot (J, 4)) into data, run its kinematics."""
    start = 0
    if char.info.has_free_root:
        data.qpos[:3] = root[:3]
        data.qpos[3:7] = np.roll(root[3:].numpy(), 1)
        start = 7
    dofs = char.rot_to_dof(joint_rot)
    for j, joint in enumerate(char.joints):
        if joint.kind == JointKind.BALL:
            data.qpos[start : start + 4] = np.roll(joint_rot[j].numpy(), 1)
            start += 4
        elif joint.kind == JointKind.HINGE:
            data.qpos[start] = dofs[joint.dof_start]
            start += 1
    mujoco.mj_kinematics(model, data)
