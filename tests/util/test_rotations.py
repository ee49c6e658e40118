"""Rotation maths against rotation matrices and known values."""

import math

import pytest
import torch

from mimickit.util import rotations as r


def random_quats(n: int = 200, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return r.exp_map_to_quat(2.0 * torch.randn(n, 3, generator=generator, dtype=torch.float64))


def test_products_and_rotations_are_those_of_the_matrices() -> None:
    a, b = random_quats(seed=1), random_quats(seed=2)
    v = torch.randn(200, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    torch.testing.assert_close(r.quat_to_matrix(r.quat_mul(a, b)), r.quat_to_matrix(a) @ r.quat_to_matrix(b))
    torch.testing.assert_close(r.quat_rotate(a, v), (r.quat_to_matrix(a) @ v[..., None])[..., 0])
    back = r.quat_rotate(r.quat_conjugate(a), r.quat_rotate(a, v))
    torch.testing.assert_close(back, v)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-6, 1e-3, 1.0, 3.0, math.pi - 1e-6])
def test_exponential_maps_come_back(angle: float) -> None:
    axis = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
    exp_map = angle * axis / axis.norm()
    torch.testing.assert_close(r.quat_to_exp_map(r.exp_map_to_quat(exp_map)), exp_map, atol=1e-9, rtol=1e-6)


def test_an_axis_and_many_angles_broadcast() -> None:
    axis, angles = torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.1, 0.2, 0.3])
    torch.testing.assert_close(r.axis_angle_to_quat(axis, angles), r.yaw_quat(angles))
    torch.testing.assert_close(r.quat_angle(r.axis_angle_to_quat(axis, angles)), angles)


def test_slerp_takes_the_short_way_at_constant_speed() -> None:
    a, b = random_quats(seed=1), random_quats(seed=2)
    whole = r.quat_diff_angle(a, b)
    part = r.quat_diff_angle(r.slerp(a, b, torch.full((200,), 0.25, dtype=torch.float64)), a)
    torch.testing.assert_close(part, 0.25 * whole, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(r.slerp(a, a, torch.full((200,), 0.5, dtype=torch.float64)), a)


def test_heading_is_what_is_left_of_a_turn_about_the_vertical() -> None:
    yaw = torch.linspace(-3.0, 3.0, 50)
    tilt = r.exp_map_to_quat(torch.tensor([0.0, 0.4, 0.0])).expand(50, 4)
    turned = r.quat_mul(r.yaw_quat(yaw), tilt)
    torch.testing.assert_close(r.heading(turned), yaw, atol=1e-5, rtol=1e-5)
    straight = r.quat_mul(r.heading_quat_inv(turned), turned)
    torch.testing.assert_close(r.heading(straight), torch.zeros(50), atol=1e-6, rtol=0)


def test_the_six_numbers_are_two_columns_of_the_matrix() -> None:
    q = random_quats()
    matrix = r.quat_to_matrix(q)
    expected = torch.cat((matrix[..., 0], matrix[..., 2]), dim=-1)
    torch.testing.assert_close(r.quat_to_tan_norm(q), expected)
