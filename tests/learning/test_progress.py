"""The bar in a terminal, plain lines elsewhere."""

import io
import sys
from pathlib import Path

import pytest

from mimickit.learning import progress
from mimickit.learning.progress import Progress
from mimickit.loggers.text_logger import TextLogger
from tests.learning.conftest import MakeAgent
from tests.learning.test_ppo_agent import SAMPLES_PER_ITER


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_training_speaks_in_lines_where_there_is_no_terminal(
    make_agent: MakeAgent, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    agent = make_agent(iters_per_output=2)
    agent.train(max_samples=2 * SAMPLES_PER_ITER, out_dir=tmp_path, logger=TextLogger(tmp_path))
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"{2 * SAMPLES_PER_ITER} samples" in lines[0]
    assert "\x1b" not in lines[0]


def test_lines_tell_rate_return_and_time_left(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    with Progress(4000, start=1000) as bar:
        bar.update(2000, samples_per_s=1234.0, episode_return=5.25)
    text = capfd.readouterr().err
    for words in ("2,000 of 4,000", "1,234 samples/s", "return 5.2", "min left"):
        assert words in text


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "140")
    with Progress(4000) as bar:
        bar.update(2000, samples_per_s=1234.0, episode_return=5.25)
        bar.say("a test [of] markup")
    text = terminal.getvalue()
    for words in ("1,234 samples/s", "2,000 samples", "a test [of] markup", "\x1b["):
        assert words in text


def test_without_an_end_and_switched_off(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    with Progress(sys.maxsize) as bar:
        bar.update(2000, samples_per_s=1.0, episode_return=0.0)
    text = capfd.readouterr().err
    assert "2,000 samples" in text
    assert "left" not in text
    with Progress(10, enabled=False) as bar:
        bar.update(5, samples_per_s=1.0, episode_return=0.0)
        bar.say("nobody listens")
    assert capfd.readouterr().err == ""
