"""Room for one rollout, allocated once."""

import torch
from torch import Tensor


class ExperienceBuffer:
    """Named tensors (T, N, ...) that a rollout of T steps in N environments fills anew each iteration."""

    def __init__(self, length: int, num_envs: int, device: str = "cpu") -> None:
        """Make room for length steps (T) in num_envs environments (N)."""
        self.length, self.num_envs, self._device = length, num_envs, device
        self._data: dict[str, Tensor] = {}

    def add(self, name: str, shape: tuple[int, ...] = (), dtype: torch.dtype = torch.float32) -> Tensor:
        """Allocate (T, N, *shape) of zeros under a new name."""
        if name in self._data:
            raise ValueError(f"experience buffer: {name!r} is there already")
        self._data[name] = torch.zeros(self.length, self.num_envs, *shape, dtype=dtype, device=self._device)
        return self._data[name]

    def __getitem__(self, name: str) -> Tensor:
        return self._data[name]

    @property
    def num_samples(self) -> int:
        """T * N."""
        return self.length * self.num_envs

    def flat(self, name: str) -> Tensor:
        """(T * N, ...) view."""
        data = self._data[name]
        return data.view(self.num_samples, *data.shape[2:])


def minibatches(num_samples: int, batch_size: float, epochs: int, generator: torch.Generator) -> list[Tensor]:
    """Indices of the minibatches of several epochs, each a new shuffle of all samples.

    Sizes are as near to batch_size as an even split allows, so that none is left over.
    """
    parts = max(1, round(num_samples / batch_size))
    device = generator.device
    shuffles = (torch.randperm(num_samples, generator=generator, device=device) for _ in range(epochs))
    return [part for shuffle in shuffles for part in torch.tensor_split(shuffle, parts)]


class Gather:
    """Picks the rows of minibatches out of several tensors, each time into the same memory."""

    def __init__(self, *tensors: Tensor) -> None:
        """Gather from tensors (num_samples, ...)."""
        self._tensors = tensors
        self._room: list[Tensor] = []

    def __call__(self, rows: Tensor) -> list[Tensor]:
        """The rows (n,) of every tensor, (n, ...) each; valid until the next call."""
        if not self._room or self._room[0].shape[0] < len(rows):
            self._room = [tensor.new_empty(len(rows), *tensor.shape[1:]) for tensor in self._tensors]
        return [
            torch.index_select(tensor, 0, rows, out=room[: len(rows)])
            for tensor, room in zip(self._tensors, self._room, strict=True)
        ]
