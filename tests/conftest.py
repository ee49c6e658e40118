"""What all tests share."""

from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def _one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small tensors are fastest on one thread; paths in the shipped files are relative to the project's root."""
    torch.set_num_threads(1)
    monkeypatch.chdir(ROOT)
