"""Values that a checkpoint can hold, which is read without running anything that it holds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

_ARRAY, _PATH = "__array__", "__path__"  # keys of what stands for them
_SCALARS = (bool, int, float, complex, str, bytes, type(None))


class NotPlainError(TypeError):
    """A value that a checkpoint can't hold."""


def to_plain(value: Any) -> Any:
    """A copy of numbers, texts, tensors, arrays, paths, and lists, tuples, sets and dicts of them, for a checkpoint.

    Raises:
        NotPlainError: there is something else in it; names its type.
    """
    try:
        return _pack(value)
    except RecursionError:
        raise NotPlainError("something that holds itself") from None


def from_plain(value: Any) -> Any:
    """What to_plain() was given."""
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return value[_ARRAY].cpu().numpy()
        if value.keys() == {_PATH}:
            return Path(value[_PATH])
        return {key: from_plain(part) for key, part in value.items()}
    return type(value)(map(from_plain, value)) if type(value) in (list, tuple, set) else value


def plain_items(items: Mapping[Any, Any]) -> tuple[dict[Any, Any], dict[Any, str]]:
    """Those items that a checkpoint can hold, and by their keys what the others are."""
    kept, lost = {}, {}
    for key, value in items.items():
        try:
            kept.update(to_plain({key: value}))
        except NotPlainError as error:
            lost[key] = str(error)
    return kept, lost


def _pack(value: Any) -> Any:
    kind, packed = type(value), value
    if isinstance(value, (np.bool_, np.number)):
        packed = value.item()
    elif isinstance(value, Tensor):
        packed = value.detach().clone()
    elif kind is np.ndarray and value.dtype.kind in "biufc":
        packed = {_ARRAY: _tensor(value)}
    elif isinstance(value, Path):
        packed = {_PATH: str(value)}
    elif kind is dict:
        packed = {key: _pack(part) for key, part in value.items() if _is_key(key)}
    elif kind in (list, tuple, set):
        packed = kind(map(_pack, value))
    if type(packed) not in (*_SCALARS, Tensor, dict, list, tuple, set):
        raise NotPlainError(f"{kind.__module__}.{kind.__qualname__}")
    return packed


def _is_key(key: Any) -> bool:
    if type(key) in _SCALARS or (type(key) is tuple and all(map(_is_key, key))):
        return True
    raise NotPlainError(f"a key {type(key).__module__}.{type(key).__qualname__}")


def _tensor(array: np.ndarray) -> Tensor:
    try:
        return torch.from_numpy(array.astype(array.dtype.newbyteorder("="), order="C"))
    except TypeError:
        raise NotPlainError(f"an array of {array.dtype}") from None
