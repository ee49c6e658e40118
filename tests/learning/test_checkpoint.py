"""Model files: whole or not at all, and never run."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from mimickit.learning.checkpoint import (
    CHECKPOINT_FORMAT,
    MODEL_FORMAT,
    ModelFileError,
    load_file,
    load_module,
    save_file,
)
from tests.learning.conftest import MakeAgent


class _Hostile:
    """Unpickling it makes a folder."""

    def __init__(self, trace: Path) -> None:
        self._trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self._trace),)


def _hostile_zip(path: Path, trace: Path) -> None:
    torch.save({"format": MODEL_FORMAT, "version": 1, "model": _Hostile(trace)}, path)


def _hostile_legacy(path: Path, trace: Path) -> None:
    torch.save({"model": _Hostile(trace)}, path, _use_new_zipfile_serialization=False)


def _hostile_pickle(path: Path, trace: Path) -> None:
    path.write_bytes(pickle.dumps(_Hostile(trace)))


@pytest.mark.parametrize("write", [_hostile_zip, _hostile_legacy, _hostile_pickle])
@pytest.mark.parametrize("method", ["load", "load_checkpoint"])
def test_a_hostile_file_is_refused_and_runs_nothing(
    write: Any, method: str, tmp_path: Path, make_agent: MakeAgent
) -> None:
    path, trace = tmp_path / "model.pt", tmp_path / "trace"
    write(path, trace)
    with pytest.raises(ModelFileError, match=r"model\.pt"):
        getattr(make_agent(), method)(path)
    assert not trace.exists()
    torch.load(path, weights_only=False) if write is not _hostile_pickle else pickle.loads(path.read_bytes())
    assert trace.exists()  # the file was hostile indeed


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100:400] = os.urandom(300)
    path.write_bytes(data)


@pytest.mark.parametrize(
    "spoil",
    [
        _truncate,
        _flip,
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("not a model\n"),
        lambda path: path.write_bytes(os.urandom(4096)),
        lambda path: path.unlink(),
        lambda path: torch.save([1, 2], path),
        lambda path: torch.save({"weights": torch.zeros(3)}, path),
        lambda path: torch.save({"format": MODEL_FORMAT, "version": 99}, path),
        lambda path: torch.save({"format": MODEL_FORMAT, "version": 1}, path),
        lambda path: torch.save({"format": MODEL_FORMAT, "version": 1, "model": {"actor": 3}}, path),
    ],
)
def test_damaged_and_other_files_are_one_clear_error(spoil: Any, tmp_path: Path, make_agent: MakeAgent) -> None:
    path = tmp_path / "model.pt"
    agent = make_agent()
    agent.save(path)
    before = {name: tensor.clone() for name, tensor in agent._model.state_dict().items()}
    spoil(path)
    with pytest.raises(ModelFileError, match=r"model\.pt"):
        agent.load(path)
    after = agent._model.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_model_is_no_checkpoint_and_the_other_way_round(tmp_path: Path, make_agent: MakeAgent) -> None:
    agent = make_agent()
    agent.save(tmp_path / "model.pt")
    agent.save_checkpoint(tmp_path / "checkpoint.pt")
    with pytest.raises(ModelFileError, match=f"expected a {CHECKPOINT_FORMAT}, found a {MODEL_FORMAT}"):
        agent.load_checkpoint(tmp_path / "model.pt")
    with pytest.raises(ModelFileError, match=f"expected a {MODEL_FORMAT}, found a {CHECKPOINT_FORMAT}"):
        agent.load(tmp_path / "checkpoint.pt")


def test_a_model_of_another_shape_is_named_and_changes_nothing() -> None:
    module = nn.Linear(3, 2)
    before = module.weight.detach().clone()
    with pytest.raises(ModelFileError, match=r"model.pt: weight: expected \(2, 3\), found \(2, 4\)"):
        load_module(module, nn.Linear(4, 2).state_dict(), "model.pt")
    with pytest.raises(ModelFileError, match=r"bias: expected a tensor \(2\), found nothing"):
        load_module(module, {"weight": torch.zeros(2, 3)}, "model.pt")
    with pytest.raises(ModelFileError, match="extra: expected no such tensor"):
        load_module(module, {**module.state_dict(), "extra": torch.zeros(1)}, "model.pt")
    assert torch.equal(module.weight, before)


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "model.pt"
    save_file({"value": torch.arange(3)}, path, MODEL_FORMAT)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        save_file({"value": torch.zeros(1000), "broken": lambda: None}, path, MODEL_FORMAT)
    assert load_file(path, MODEL_FORMAT)["value"].tolist() == [0, 1, 2]
    assert [file.name for file in path.parent.iterdir()] == ["model.pt"]


def test_a_saved_model_acts_the_same(tmp_path: Path, make_agent: MakeAgent) -> None:
    first, second = make_agent(seed=1), make_agent(seed=2)
    first._model.obs_norm.record(torch.randn(100, 8) * 3.0)
    first._model.obs_norm.update()
    obs = torch.randn(5, 8)
    assert not torch.equal(first._act(obs), second._act(obs))
    first.save(tmp_path / "model.pt")
    second.load(tmp_path / "model.pt")
    assert torch.equal(first._act(obs), second._act(obs))
