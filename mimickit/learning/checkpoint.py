"""Model and checkpoint files: written in one go, read without running anything that they hold."""

import logging
import os
import pickle
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

LOG = logging.getLogger("mimickit.learning")
FORMAT_KEY, VERSION = "format", 1
MODEL_FORMAT, CHECKPOINT_FORMAT = "mimickit model", "mimickit checkpoint"


class ModelFileError(ValueError):
    """A model or checkpoint file that can't be used; the message names the file, what was found and what was
    expected.
    """


def save_file(content: Mapping[str, Any], path: str | Path, kind: str) -> None:
    """Write plain values and tensors to path: a reader finds the old file or the whole of the new one.

    Args:
        content: dicts, lists, numbers, names, tensors. path: its folder is made. kind: MODEL_FORMAT or
            CHECKPOINT_FORMAT.

    Raises:
        OSError: it can't be written; names the path.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            torch.save({FORMAT_KEY: kind, "version": VERSION, **content}, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except (OSError, RuntimeError) as err:  # torch words a full disk as an error of its own
        cause = err.__context__ if isinstance(err, RuntimeError) and isinstance(err.__context__, OSError) else err
        raise OSError(f"{path}: can't be written: {cause}") from None
    finally:
        part.unlink(missing_ok=True)


def try_save(save: Callable[[], None], *, must: bool) -> None:
    """A full disk costs a checkpoint, not the training; only at the end (must) is it an error."""
    try:
        save()
    except OSError as err:
        if must:
            raise
        LOG.error("could not save: %s; training goes on", err)


def load_file(path: str | Path, kind: str, device: str = "cpu") -> dict[str, Any]:
    """Read a file that save_file wrote.

    Raises:
        ModelFileError: no such file, another kind of file, a damaged one, one that holds code, or of another
            version.
    """
    path = Path(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about pickles that are refused right after
            content = torch.load(path, map_location=device, weights_only=True)
    except FileNotFoundError:
        raise ModelFileError(f"{path}: no such file: expected a {kind}") from None
    except pickle.UnpicklingError as err:
        # torch advises to load it all the same; what the file asks for is behind that
        words = str(err).split("WeightsUnpickler error:")
        reason = words[1].strip().splitlines()[0] if len(words) > 1 else "it holds more than tensors"
        raise ModelFileError(
            f"{path}: refused: expected a {kind} of plain tensors, found a pickle of something else ({reason})"
        ) from None
    except (
        OSError,
        RuntimeError,
        EOFError,
        ValueError,
        KeyError,
        AttributeError,
        IndexError,
        TypeError,
    ) as err:
        reason = (str(err).splitlines() or [type(err).__name__])[0]
        raise ModelFileError(f"{path}: not a {kind}, or a damaged one: {reason}") from None
    return _checked(content, path, kind)


def _checked(content: Any, path: Path, kind: str) -> dict[str, Any]:
    found = content.get(FORMAT_KEY) if isinstance(content, dict) else None
    if found != kind:
        what = found if isinstance(found, str) else type(content).__name__
        raise ModelFileError(f"{path}: expected a {kind}, found a {what}")
    if content.get("version") != VERSION:
        raise ModelFileError(f"{path}: expected version {VERSION} of the {kind}, found {content.get('version')!r}")
    return content


def get_part(content: Mapping[str, Any], key: str, kind: type[Any], path: str | Path) -> Any:
    """content[key], which has to be of a type.

    Raises:
        ModelFileError: it isn't there, or of another type.
    """
    if not isinstance(content.get(key), kind):
        raise ModelFileError(f"{path}: {key}: expected {kind.__name__}, found {type(content.get(key)).__name__}")
    return content[key]


def load_module(module: nn.Module, state: Mapping[str, Any], path: str | Path) -> None:
    """Copy tensors into a module; nothing is changed unless all of them fit.

    Raises:
        ModelFileError: a tensor too many or too few, or of another shape; with its name and both shapes.
    """
    own = module.state_dict()
    for name, tensor in own.items():
        found = state.get(name)
        if not isinstance(found, Tensor):
            raise ModelFileError(f"{path}: {name}: expected a tensor {_shape(tensor)}, found nothing; {_HINT}")
        if found.shape != tensor.shape:
            raise ModelFileError(f"{path}: {name}: expected {_shape(tensor)}, found {_shape(found)}; {_HINT}")
    surplus = sorted(set(state) - set(own))
    if surplus:
        raise ModelFileError(f"{path}: {surplus[0]}: expected no such tensor; {_HINT}")
    module.load_state_dict(dict(state))


_HINT = "the model belongs to another network, character or observation than the configuration describes"


def _shape(tensor: Tensor) -> str:
    return "(" + ", ".join(map(str, tensor.shape)) + ")"
