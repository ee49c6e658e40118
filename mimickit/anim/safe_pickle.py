"""Pickles read without running what they may hold.

Motion clips are handed around as pickled dicts. Unpickling calls whatever the file names, so a clip from
elsewhere could run any code. Here only plain containers, numbers and numpy arrays come out; anything else
is refused by name. Numpy's own unpickling code is not trusted with the file either: arrays are rebuilt from
checked shape, type and bytes.
"""

import collections
import math
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

_MAX_DEPTH = 100  # nested containers
_NUMBER_KINDS = "biuf"  # bool, signed, unsigned, float


class UnsafePickleError(ValueError):
    """A pickle that is damaged or holds something other than containers, numbers and arrays."""


class NoPickleError(UnsafePickleError):
    """Not a pickle, or a damaged one."""


def load_pickle(path: str | os.PathLike[str]) -> Any:
    """Contents of a pickle file. Raises UnsafePickleError naming the file and what was refused, NoPickleError for a
    file that is none.
    """
    path = Path(path)
    with path.open("rb") as file:
        try:
            return _resolve(_Reader(file).load(), {}, 0)
        except UnsafePickleError as error:
            raise UnsafePickleError(f"{path}: {error}") from None
        except Exception as error:  # a damaged or hostile pickle can fail in any way
            raise NoPickleError(f"{path}: not a readable pickle: {type(error).__name__}: {error}") from None


class _Dtype:
    """Stands in for numpy.dtype: a number type and its byte order, nothing else."""

    def __init__(self, code: object, *_unused: object) -> None:
        if not isinstance(code, str):
            raise UnsafePickleError(f"numpy type: expected a name, found {code!r}")
        self._code = code
        self._order = "="

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 5 or state[2:5] != (None, None, None):
            raise UnsafePickleError(f"numpy type {self._code!r}: only plain numbers are read")
        self._order = state[1] if state[1] in ("<", ">") else "="

    def numpy(self) -> np.dtype:
        """The real type. Raises UnsafePickleError for objects, strings, records."""
        try:
            dtype = np.dtype(self._code)
        except TypeError:
            raise UnsafePickleError(f"numpy type {self._code!r} is unknown") from None
        if dtype.kind not in _NUMBER_KINDS:
            raise UnsafePickleError(f"numpy type {self._code!r}: only plain numbers are read")
        if self._order == "=":
            return dtype
        return dtype.newbyteorder("<" if self._order == "<" else ">")


class _Array:
    """Stands in for numpy.ndarray until its state has been read."""

    def __init__(self) -> None:
        self.value: np.ndarray | None = None

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) not in (4, 5):
            raise UnsafePickleError("numpy array: damaged state")
        shape, dtype, fortran, data = state[-4:]
        self.value = _make_array(data, dtype, shape, "F" if fortran else "C")


class _Named:
    """Stands in for a function that a pickle names, and has no attribute that a pickle could set."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *args: object) -> Any:
        return self._call(*args)

    def __setstate__(self, state: object) -> None:
        raise UnsafePickleError("refused: it would change a function")


def _no_array(*_unused: object) -> None:
    raise UnsafePickleError("numpy array: damaged")


_NDARRAY = _Named(_no_array)  # numpy.ndarray, which only ever is the first argument of _reconstruct


def _make_array(data: object, dtype: object, shape: object, order: object) -> np.ndarray:
    """An array of the given bytes, copied into native byte order."""
    if isinstance(data, str):  # written by Python 2
        data = data.encode("latin1")
    if not isinstance(dtype, _Dtype) or not isinstance(data, bytes | bytearray):
        raise UnsafePickleError("numpy array: expected a number type and bytes")
    if not isinstance(shape, tuple) or not all(isinstance(n, int) and n >= 0 for n in shape):
        raise UnsafePickleError(f"numpy array: expected a shape, found {shape!r}")
    real = dtype.numpy()
    if math.prod(shape) * real.itemsize != len(data):
        raise UnsafePickleError(f"numpy array: shape {shape} of {real} does not fit {len(data)} bytes")
    array = np.frombuffer(data, dtype=real).reshape(shape, order="F" if order == "F" else "C")
    return array.astype(real.newbyteorder("="))


def _reconstruct(subtype: object, *_unused: object) -> _Array:
    if subtype is not _NDARRAY:
        raise UnsafePickleError("numpy array: only plain arrays are read")
    return _Array()


def _scalar(dtype: object, data: object) -> Any:
    return _make_array(data, dtype, (), "C")[()].item()


def _encode(text: object, encoding: object) -> bytes:
    """Bytes as Python 2 protocols write them."""
    if not isinstance(text, str) or encoding not in ("latin1", "latin-1"):
        raise UnsafePickleError("bytes: expected text in latin1")
    return text.encode("latin1")


def _no_bytes() -> bytes:
    """Empty bytes, which Python 2 protocols write as a call without arguments."""
    return b""


def _known_names() -> dict[tuple[str, str], _Named | type]:
    names: dict[tuple[str, str], _Named | type] = {
        ("numpy", "ndarray"): _NDARRAY,
        ("numpy", "dtype"): _Dtype,
        ("_codecs", "encode"): _Named(_encode),
        ("collections", "OrderedDict"): collections.OrderedDict,
    }
    for builtins in ("builtins", "__builtin__"):  # protocols below 4 write these by name
        names |= {
            (builtins, "set"): set,
            (builtins, "frozenset"): frozenset,
            (builtins, "bytes"): _Named(_no_bytes),
        }
    for core in ("numpy.core", "numpy._core"):  # numpy 1 and numpy 2
        names[(f"{core}.multiarray", "_reconstruct")] = _Named(_reconstruct)
        names[(f"{core}.multiarray", "scalar")] = _Named(_scalar)
        names[(f"{core}.numeric", "_frombuffer")] = _Named(_make_array)
    return names


class _Reader(pickle.Unpickler):
    """Knows the few names that plain data needs."""

    _NAMES = _known_names()

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, encoding="latin1")

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name. Raises UnsafePickleError for any that plain data does not need."""
        known = self._NAMES.get((module, name))
        if known is None:
            raise UnsafePickleError(
                f"refused: it asks for {module}.{name}; only containers, numbers and numpy arrays are read"
            )
        return known


def _resolve(value: Any, seen: dict[int, Any], depth: int) -> Any:
    """The same containers with stand-ins replaced by arrays; shared parts stay shared."""
    if id(value) in seen:
        return seen[id(value)]
    if depth > _MAX_DEPTH:
        raise UnsafePickleError(f"containers nested deeper than {_MAX_DEPTH}")
    result = _resolve_one(value, seen, depth + 1)
    if isinstance(value, dict | list | tuple | _Array):
        seen[id(value)] = result
    return result


def _resolve_one(value: Any, seen: dict[int, Any], depth: int) -> Any:
    match value:
        case _Array():
            if value.value is None:
                raise UnsafePickleError("numpy array: no contents")
            return value.value
        case dict():
            return {key: _resolve(item, seen, depth) for key, item in value.items()}
        case list():
            return [_resolve(item, seen, depth) for item in value]
        case tuple():
            return tuple(_resolve(item, seen, depth) for item in value)
        case None | bool() | int() | float() | str() | bytes() | bytearray() | set() | frozenset():
            return value
        case np.ndarray():
            return value
        case _:
            raise UnsafePickleError(f"refused: {type(value).__name__} is not plain data")
