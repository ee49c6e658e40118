"""Pickles of others: plain data comes through, code doesn't."""

import collections
import datetime as dt
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mimickit.anim.motion import MotionError, load_motion
from mimickit.anim.safe_pickle import UnsafePickleError, load_pickle


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "x.pkl"
    path.write_bytes(content)
    return path


PLAIN = {
    "text": "ä",
    "bytes": b"\xff",
    "numbers": [1, 2**70, -0.5, True, None, b""],
    "nested": ({"a": (1, [2])},),
    "ordered": collections.OrderedDict(a=1),
    "set": {1, 2},
    "double": np.arange(6.0).reshape(2, 3),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "big endian": np.arange(3, dtype=">f4"),
    "bool": np.array([True, False]),
    "no dimension": np.array(5.0),
    "nothing": np.zeros((0, 4)),
    "scalar": np.float32(0.25),
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("module", ["numpy._core", "numpy.core"])
def test_plain_data_comes_through(tmp_path: Path, protocol: int, module: str) -> None:
    content = pickle.dumps(PLAIN, protocol=protocol)
    if protocol < 4:  # later ones write the length of the name
        content = content.replace(b"numpy._core", module.encode())
    found = load_pickle(write(tmp_path, content))
    assert set(found) == set(PLAIN)
    for key, value in PLAIN.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(found[key], value)
            assert found[key].dtype == value.dtype.newbyteorder("=")
        else:
            assert found[key] == value


def test_shared_parts_are_read_once(tmp_path: Path) -> None:
    """Thirty levels of lists that hold the level below twice: small as a pickle, 2^30 lists if copied."""
    value: list[Any] = []
    for _ in range(30):
        value = [value, value]
    found = load_pickle(write(tmp_path, pickle.dumps(value)))
    assert found[0] is found[1]


class Hostile:
    """Unpickles as a call of anything."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = (function, arguments)

    def __reduce__(self) -> Any:
        return self._call


def harm(path: str) -> None:
    Path(path).write_text("harm done")


def attacks(mark: Path) -> dict[str, bytes]:
    """Pickles that would leave the file `mark` (or do other harm) if anything they name was called."""
    code = f"open({str(mark)!r}, 'w')"
    loads = pickle.dumps(Hostile(exec, code))
    return {
        "function": pickle.dumps({"fps": 30, "frames": Hostile(harm, str(mark))}),
        "exec": loads,
        "exec, text protocol": pickle.dumps(Hostile(exec, code), protocol=0),
        "os.system": f"cposix\nsystem\n(S'touch {mark}'\ntR.".encode(),
        "inst": f"(S'touch {mark}'\niposix\nsystem\n.".encode(),
        "pickle in a pickle": pickle.dumps(Hostile(pickle.loads, loads)),
        "numpy.load": pickle.dumps(Hostile(np.load, str(mark))),
        "a method by its dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0fndarray.tofile\x93.",
        "getattr": b"cbuiltins\ngetattr\n(cnumpy\nndarray\nS'tofile'\ntR.",
        "class": pickle.dumps(dt.date(2020, 1, 1)),
        "object array": pickle.dumps(np.array([Hostile(harm, str(mark))], dtype=object)),
        "array of anything": pickle.dumps(np.array([{}], dtype=object)),
        "records": pickle.dumps(np.zeros(2, dtype=[("a", "f4"), ("b", "O")])),
        "array over foreign bytes": b"cnumpy\nndarray\n((I4\ntS'O'\ntR.",
        "wrong length": pickle.dumps(np.arange(4.0), protocol=2).replace(b"K\x04\x85", b"K\x05\x85"),
        "persistent name": b"Pname\n.",
        "extension": b"\x82\x01.",
        "cut short": pickle.dumps(PLAIN)[:-20],
        "nothing": b"",
    }


@pytest.mark.parametrize("case", attacks(Path("mark")))
def test_a_hostile_pickle_is_refused_and_nothing_runs(tmp_path: Path, case: str) -> None:
    mark = tmp_path / "mark"
    path = write(tmp_path, attacks(mark)[case])
    with pytest.raises(UnsafePickleError, match=r"x\.pkl"):
        load_pickle(path)
    with pytest.raises(MotionError, match=r"x\.pkl"):
        load_motion(path)
    assert not mark.exists()


def test_what_was_refused_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, b"cposix\nsystem\n(S'true'\ntR.")
    with pytest.raises(UnsafePickleError, match=r"asks for posix\.system"):
        load_pickle(path)


def test_endless_nesting_is_refused(tmp_path: Path) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(UnsafePickleError, match="nested deeper"):
        load_pickle(write(tmp_path, pickle.dumps(loop)))


@pytest.mark.parametrize(
    "name", ["numpy.core.multiarray\n_reconstruct", "numpy\nndarray", "numpy\ndtype", "builtins\nset"]
)
@pytest.mark.parametrize("attribute", ["__defaults__", "__init__", "_call", "name"])
def test_what_names_stand_for_can_not_be_changed(tmp_path: Path, name: str, attribute: str) -> None:
    """A pickle may set attributes of what it finds; that must not reach what the next load uses."""
    for state in (f"(N}}S'{attribute}'\n(I1\ntst", f"}}S'{attribute}'\nI1\ns"):
        with pytest.raises(UnsafePickleError):
            load_pickle(write(tmp_path, f"c{name}\n{state}b.".encode()))
    array = np.arange(3.0)
    np.testing.assert_array_equal(load_pickle(write(tmp_path, pickle.dumps(array))), array)
