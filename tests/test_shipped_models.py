"""The policies that ship do what the README says of them."""

from pathlib import Path

import pytest
import yaml

from mimickit.config import load_yaml
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.envs.deepmimic_env import DeepMimicEnv
from mimickit.learning.ppo_agent import PPOAgent

MODELS = sorted(path.parent for path in Path("data/models").glob("*/model.pt"))
# normalised return, falls, and body error (m) over 32 episodes
WANTED = {
    "humanoid_walk": (0.95, 0, 0.03), "humanoid_run": (0.84, 1, 0.05), "humanoid_spinkick": (0.75, 0, 0.10),
    "humanoid_cartwheel": (0.88, 0, 0.06), "humanoid_backflip": (0.74, 0, 0.12),
}  # fmt: skip


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_a_shipped_policy_is_as_good_as_is_said(folder: Path) -> None:
    config = load_yaml(folder / "config.yaml")
    engine = MujocoEngine(config["engine"], num_envs=32)
    env = DeepMimicEnv(config["env"], engine, num_envs=32)
    agent = PPOAgent(config["agent"], env)
    agent.load(folder / "model.pt")
    result = agent.test(32)
    assert result["num_eps"] == 32
    if folder.name in WANTED:
        normalised_return, falls, body_error = WANTED[folder.name]
        assert result["normalised_return"] >= normalised_return
        assert result["falls"] <= falls
        assert result["body_pos_err_m"] <= body_error


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_a_shipped_policy_says_how_it_was_made(folder: Path) -> None:
    text = Path("data/models/README.md").read_text()
    assert f"`{folder.name}`" in text
    config = yaml.safe_load((folder / "config.yaml").read_text())
    assert Path(config["env"]["motion_file"]).is_file()
    assert str(Path.home()) not in (folder / "config.yaml").read_text()
