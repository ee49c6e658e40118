"""The tracking reward, the errors and the observations, against plain loops and known values."""

import math

import pytest
import torch

from mimickit.envs import observations
from mimickit.envs.tracking import CharState, RewardConfig, tracking_errors, tracking_reward
from mimickit.util.rotations import exp_map_to_quat, quat_mul, quat_rotate, yaw_quat


def random_state(seed: int, n: int = 5) -> CharState:
    g = torch.Generator().manual_seed(seed)

    def vec(*shape: int) -> torch.Tensor:
        return torch.randn(n, *shape, generator=g)

    return CharState(
        root_pos=vec(3), root_rot=exp_map_to_quat(vec(3)), root_vel=vec(3), root_ang_vel=vec(3),
        joint_rot=exp_map_to_quat(vec(4, 3)), dof_vel=vec(8), body_pos=vec(5, 3), body_rot=exp_map_to_quat(vec(5, 3)),
    )  # fmt: skip


def reward(char: CharState, ref: CharState, config: RewardConfig) -> torch.Tensor:
    return tracking_reward(
        char, ref, joint_w=torch.ones(4), dof_w=torch.ones(8), key_ids=torch.tensor([2, 4]), config=config
    )


def test_the_reference_itself_earns_the_bound() -> None:
    state = random_state(0)
    config = RewardConfig()
    torch.testing.assert_close(reward(state, state, config), torch.full((5,), config.bound))
    assert config.bound == pytest.approx(1.0)
    for name, error in tracking_errors(state, state).items():
        torch.testing.assert_close(error, torch.zeros(5), atol=2e-3, rtol=0.0, msg=name)


def test_each_term_falls_as_its_formula_says() -> None:
    state = random_state(0)
    turn = exp_map_to_quat(torch.tensor([0.0, 0.0, 0.4]))
    changed = {
        "pose": ({"joint_rot": quat_mul(state.joint_rot, turn.expand(5, 4, 4))}, 4 * 0.4**2),
        "vel": ({"dof_vel": state.dof_vel + 2.0}, 8 * 4.0),
        "root_pose": ({"root_rot": quat_mul(state.root_rot, turn.expand(5, 4))}, 0.1 * 0.4**2),
        "root_vel": ({"root_vel": state.root_vel + torch.tensor([1.0, 0.0, 0.0])}, 1.0),
    }
    config = RewardConfig()
    for term, (fields, error) in changed.items():
        other = CharState(**{**state.__dict__, **fields})
        weight, scale = getattr(config, f"{term}_w"), getattr(config, f"{term}_scale")
        expected = config.bound - weight * (1.0 - math.exp(-scale * error))
        found = reward(other, state, config)
        torch.testing.assert_close(found, torch.full((5,), expected), atol=1e-4, rtol=0, msg=term)


def test_errors_have_the_size_of_what_was_moved() -> None:
    state = random_state(1)
    body_pos = state.body_pos.clone()
    body_pos[:, 3, 1] += 0.5
    moved = CharState(**{**state.__dict__, "body_pos": body_pos})
    torch.testing.assert_close(tracking_errors(moved, state)["body_pos_err_m"], torch.full((5,), 0.1))
    shifted = CharState(**{**state.__dict__, "root_pos": state.root_pos + 1.0, "body_pos": state.body_pos + 1.0})
    errors = tracking_errors(shifted, state)
    torch.testing.assert_close(errors["root_pos_err_m"], torch.full((5,), math.sqrt(3.0)))
    torch.testing.assert_close(errors["body_pos_err_m"], torch.zeros(5), atol=1e-5, rtol=0.0)


def obs_of(state: CharState, **options: bool) -> torch.Tensor:
    return observations.char_obs(
        root_pos=state.root_pos, root_rot=state.root_rot, root_vel=state.root_vel, root_ang_vel=state.root_ang_vel,
        dof_pos=state.dof_vel, dof_vel=state.dof_vel, body_pos=state.body_pos,
        **{"global_obs": False, "root_height_obs": True, **options},
    )  # fmt: skip


def turned(state: CharState, angle: float) -> CharState:
    """The same scene seen from elsewhere: turned about the vertical and shifted along the ground."""
    q = yaw_quat(torch.full((5,), angle))
    shift = torch.tensor([3.0, -2.0, 0.0])
    return CharState(
        root_pos=quat_rotate(q, state.root_pos) + shift,
        root_rot=quat_mul(q, state.root_rot),
        root_vel=quat_rotate(q, state.root_vel),
        root_ang_vel=quat_rotate(q, state.root_ang_vel),
        joint_rot=state.joint_rot,
        dof_vel=state.dof_vel,
        body_pos=quat_rotate(q.unsqueeze(1), state.body_pos) + shift,
        body_rot=quat_mul(q.unsqueeze(1), state.body_rot),
    )


def test_local_observations_do_not_know_heading_or_place() -> None:
    state = random_state(2)
    torch.testing.assert_close(obs_of(turned(state, 2.0)), obs_of(state), atol=1e-4, rtol=1e-4)
    assert not torch.allclose(obs_of(turned(state, 2.0), global_obs=True), obs_of(state, global_obs=True))
    assert obs_of(state, root_height_obs=False).shape[-1] == obs_of(state).shape[-1] - 1


def test_local_targets_do_not_know_heading_or_place() -> None:
    def targets(char: CharState, ref: CharState) -> torch.Tensor:
        return observations.target_obs(
            root_pos=char.root_pos, root_rot=char.root_rot, tar_root_pos=ref.root_pos.unsqueeze(1),
            tar_root_rot=ref.root_rot.unsqueeze(1), tar_dof_pos=ref.dof_vel.unsqueeze(1),
            tar_key_pos=ref.body_pos[:, :2].unsqueeze(1), global_obs=False,
        )  # fmt: skip

    char, ref = random_state(3), random_state(4)
    expected = targets(char, ref)
    torch.testing.assert_close(targets(turned(char, -1.0), turned(ref, -1.0)), expected, atol=1e-4, rtol=1e-4)


def test_phase_meets_itself_at_the_loop() -> None:
    ends = observations.phase_obs(torch.tensor([0.0, 1.0]), 3)
    torch.testing.assert_close(ends[0], ends[1], atol=1e-5, rtol=0.0)
    assert ends.shape == (2, 6)
