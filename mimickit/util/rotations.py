"""Rotation maths on torch tensors.

Quaternions are x y z w, unit length, shape (..., 4); vectors are (..., 3); exponential maps (..., 3) are axis times
angle in radians. Every function is vectorised over the leading dimensions, which broadcast.
"""

import torch
from torch import Tensor

_SMALL = 1e-5  # below this angle (rad) the series is used, where sin(x)/x loses digits


def quat_identity(*shape: int, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float32) -> Tensor:
    """Identity quaternions of shape (*shape, 4)."""
    q = torch.zeros(*shape, 4, device=device, dtype=dtype)
    q[..., 3] = 1.0
    return q


def quat_mul(a: Tensor, b: Tensor) -> Tensor:
    """Hamilton product a * b: rotate by b, then by a."""
    ax, ay, az, aw = a.unbind(-1)
    bx, by, bz, bw = b.unbind(-1)
    return torch.stack(
        (
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
            aw * bw - ax * bx - ay * by - az * bz,
        ),
        dim=-1,
    )


def quat_conjugate(q: Tensor) -> Tensor:
    """The inverse of a unit quaternion."""
    return torch.cat((-q[..., :3], q[..., 3:]), dim=-1)


def quat_normalize(q: Tensor) -> Tensor:
    """q scaled to unit length."""
    return q / q.norm(dim=-1, keepdim=True).clamp_min(1e-9)


def quat_positive(q: Tensor) -> Tensor:
    """The same rotation with w >= 0."""
    return torch.where(q[..., 3:] < 0.0, -q, q)


def quat_rotate(q: Tensor, v: Tensor) -> Tensor:
    """Vectors v rotated by q."""
    xyz, v = torch.broadcast_tensors(q[..., :3], v)
    t = 2.0 * torch.linalg.cross(xyz, v)
    return v + q[..., 3:] * t + torch.linalg.cross(xyz, t)


def exp_map_to_quat(exp_map: Tensor) -> Tensor:
    """Quaternion of an exponential map (radians); any magnitude."""
    angle = exp_map.norm(dim=-1, keepdim=True)
    half = 0.5 * angle
    scale = torch.where(angle > _SMALL, torch.sin(half) / angle.clamp_min(_SMALL), 0.5 - angle * angle / 48.0)
    return torch.cat((exp_map * scale, torch.cos(half)), dim=-1)


def quat_to_exp_map(q: Tensor) -> Tensor:
    """Exponential map of q, of magnitude at most pi (radians)."""
    q = quat_positive(q)
    sin_half = q[..., :3].norm(dim=-1, keepdim=True)
    angle = 2.0 * torch.atan2(sin_half, q[..., 3:])
    scale = torch.where(sin_half > _SMALL, angle / sin_half.clamp_min(_SMALL), torch.full_like(angle, 2.0))
    return q[..., :3] * scale


def axis_angle_to_quat(axis: Tensor, angle: Tensor) -> Tensor:
    """Quaternion of a rotation by angle (...,) rad about a unit axis (..., 3)."""
    half = 0.5 * angle.unsqueeze(-1)
    xyz = axis * torch.sin(half)
    return torch.cat((xyz, torch.cos(half).expand(*xyz.shape[:-1], 1)), dim=-1)


def quat_angle(q: Tensor) -> Tensor:
    """Rotation angle (...,) of q in [0, pi] rad."""
    return 2.0 * torch.atan2(q[..., :3].norm(dim=-1), q[..., 3].abs())


def quat_diff_angle(a: Tensor, b: Tensor) -> Tensor:
    """Angle (...,) in [0, pi] rad between two rotations."""
    return quat_angle(quat_mul(a, quat_conjugate(b)))


def slerp(a: Tensor, b: Tensor, t: Tensor) -> Tensor:
    """Shortest spherical interpolation from a (t = 0) to b (t = 1); t (...,) or (..., 1)."""
    if t.dim() < a.dim():
        t = t.unsqueeze(-1)
    cos = (a * b).sum(-1, keepdim=True)
    b = torch.where(cos < 0.0, -b, b)
    cos = cos.abs().clamp_max(1.0)
    angle = torch.acos(cos)
    sin = torch.sin(angle)
    near = sin < 1e-4
    safe = torch.where(near, torch.ones_like(sin), sin)
    wa = torch.where(near, 1.0 - t, torch.sin((1.0 - t) * angle) / safe)
    wb = torch.where(near, t, torch.sin(t * angle) / safe)
    return quat_normalize(wa * a + wb * b)


def heading(q: Tensor) -> Tensor:
    """Direction (...,) rad in the ground plane of the rotated x axis."""
    x, y, z, w = q.unbind(-1)
    return torch.atan2(2.0 * (x * y + w * z), 1.0 - 2.0 * (y * y + z * z))


def yaw_quat(angle: Tensor) -> Tensor:
    """Rotation by angle (...,) rad about the vertical."""
    half = 0.5 * angle
    zero = torch.zeros_like(half)
    return torch.stack((zero, zero, torch.sin(half), torch.cos(half)), dim=-1)


def heading_quat(q: Tensor) -> Tensor:
    """The rotation about the vertical that holds q's heading."""
    return yaw_quat(heading(q))


def heading_quat_inv(q: Tensor) -> Tensor:
    """The rotation about the vertical that takes q's heading away."""
    return yaw_quat(-heading(q))


def quat_to_tan_norm(q: Tensor) -> Tensor:
    """Rotated x and z axes side by side, (..., 6): a rotation without jumps (Zhou et al. 2019)."""
    x, y, z, w = q.unbind(-1)
    return torch.stack(
        (
            1.0 - 2.0 * (y * y + z * z),
            2.0 * (x * y + w * z),
            2.0 * (x * z - w * y),
            2.0 * (x * z + w * y),
            2.0 * (y * z - w * x),
            1.0 - 2.0 * (x * x + y * y),
        ),
        dim=-1,
    )


def quat_to_matrix(q: Tensor) -> Tensor:
    """Rotation matrices (..., 3, 3) whose columns are the rotated axes."""
    x, y, z, w = q.unbind(-1)
    rows = (
        1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
        2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
        2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y),
    )  # fmt: skip
    return torch.stack(rows, dim=-1).reshape(*q.shape[:-1], 3, 3)
