"""The callback that docs/media.md shows is run as it stands there."""

import json
import re

import yaml

from mimickit.cli import main
from mimickit.config import project_root
from mimickit.loggers.text_logger import read_rows
from mimickit.registry import BUILT_IN, Kind

PAGE = (project_root() / "docs" / "media.md").read_text(encoding="utf-8")
SHORT = ("--num_envs", "2", "--max_samples", "32", "--agent.steps_per_iter", "16", "--test_episodes", "2",
         "--env.episode_length", "0.4")  # fmt: skip


def block(language):
    return re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[1]


def test_the_callback_of_the_page(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(project_root() / "data")
    (tmp_path / "my_callbacks.py").write_text(block("python"))
    monkeypatch.chdir(tmp_path)
    assert main([*SHORT, "--callbacks", "my_callbacks:Heights", "every=1", "--out_dir", "run"]) == 0
    assert "humanoid_walk/heights" in json.loads((tmp_path / "run" / "result.json").read_text())["episode_media"]
    assert any("test/return_per_step" in row for row in read_rows(tmp_path / "run" / "log.jsonl"))


def test_the_list_of_the_page_is_one_of_callbacks(tmp_path, monkeypatch):
    (tmp_path / "data").symlink_to(project_root() / "data")
    (tmp_path / "my_callbacks.py").write_text(block("python"))
    monkeypatch.chdir(tmp_path)
    agent = yaml.safe_load((project_root() / "data/agents/ppo_cpu_agent.yaml").read_text())
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(agent | yaml.safe_load(block("yaml"))))
    assert main([*SHORT, "--agent_config", "agent.yaml", "--out_dir", "run"]) == 0
    assert (tmp_path / "run" / "best_mean_return.pt").is_file()


def test_the_table_names_every_callback_that_is_ready():
    for name in BUILT_IN[Kind.CALLBACK]:
        assert f"| `{name}` |" in PAGE, name
