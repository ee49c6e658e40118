"""Running statistics against numpy's, and what a diverged simulation does to them: nothing."""

import gymnasium
import numpy as np
import pytest
import torch

from mimickit.learning.normalizer import Normalizer, action_normalizer


def _batches() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    scale, offset = torch.tensor([1.0, 20.0, 0.01]), torch.tensor([0.0, -300.0, 5.0])
    return [torch.randn(rows, 3, generator=generator) * scale + offset for rows in (700, 1, 512, 64)]


def test_matches_the_statistics_of_all_batches_together() -> None:
    normalizer = Normalizer(3)
    for batch in _batches():
        normalizer.record(batch)
        normalizer.update()
    together = torch.cat(_batches()).double().numpy()
    assert normalizer.count == len(together)
    np.testing.assert_allclose(normalizer.mean.numpy(), together.mean(0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(normalizer.std.numpy(), together.std(0), rtol=1e-4)


def test_statistics_hold_still_until_update() -> None:
    normalizer = Normalizer(3)
    normalizer.record(_batches()[0])
    assert normalizer.mean.tolist() == [0.0, 0.0, 0.0]
    assert normalizer.std.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf"), 3e38])
def test_a_diverged_environment_leaves_no_trace(bad: float) -> None:
    clean, hit = Normalizer(3), Normalizer(3)
    for number, batch in enumerate(_batches()):
        clean.record(batch)
        spoilt = torch.cat([batch, torch.tensor([[0.0, bad, 5.0]])]) if number else batch
        hit.record(spoilt)
        clean.update()
        hit.update()
    assert torch.isfinite(hit.mean).all()
    torch.testing.assert_close(hit.mean, clean.mean, rtol=0.0, atol=10.0)  # of a deviation of 20
    assert torch.all(hit.std < 10.0 * clean.std)
    out = hit.normalize(torch.tensor([[bad, bad, bad]]))
    assert torch.isfinite(out).all()
    assert out.abs().max() <= 10.0


def test_clips_and_writes_into_given_memory() -> None:
    normalizer, room = Normalizer(2, clip=5.0), torch.zeros(1, 2)
    assert normalizer.normalize(torch.tensor([[100.0, -2.0]]), out=room) is room
    assert room.tolist() == [[5.0, -2.0]]


def test_a_constant_feature_is_only_centred() -> None:
    normalizer = Normalizer(1)
    normalizer.record(torch.full((50, 1), 7.0))
    normalizer.update()
    assert normalizer.normalize(torch.tensor([[7.5]])).item() == pytest.approx(0.5)


def test_state_goes_on_where_it_was() -> None:
    first, second = Normalizer(3), Normalizer(3)
    for batch in _batches()[:2]:
        first.record(batch)
    first.update()
    second.load_state_dict(first.state_dict())
    for batch in _batches()[2:]:
        for normalizer in (first, second):
            normalizer.record(batch)
            normalizer.update()
    assert torch.equal(first.std, second.std)
    values = _batches()[0]
    assert torch.equal(first.normalize(values), second.normalize(values))


def test_action_bounds_become_minus_one_and_one() -> None:
    low, high = np.array([-1.0, 2.0, -np.inf, 3.0], np.float32), np.array([1.0, 6.0, np.inf, 3.0], np.float32)
    normalizer = action_normalizer(gymnasium.spaces.Box(low, high, dtype=np.float32))
    assert normalizer.normalize(torch.tensor([-1.0, 6.0, 7.0, 3.0])).tolist() == [-1.0, 1.0, 7.0, 0.0]
    assert normalizer.denormalize(torch.tensor([0.5, -1.0, 7.0, 1.0])).tolist() == [0.5, 2.0, 7.0, 4.0]
