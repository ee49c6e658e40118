"""make_env() and load_agent(): what they build, and what they refuse."""

import pytest
import torch
import yaml

from mimickit import load_agent, make_env
from mimickit.engines.mujoco_engine import MujocoEngine
from mimickit.learning.checkpoint import ModelFileError
from mimickit.util.keys import ConfigError

WALK = "data/models/humanoid_walk"
CHAR = {"env_name": "mimickit.envs.char_env:CharEnv", "char_file": "data/assets/humanoid/humanoid.xml"}


def test_a_models_folder_brings_its_engine_and_a_file_the_shipped_one():
    env = make_env(WALK, num_envs=2, seed=4)
    assert isinstance(env.engine, MujocoEngine)
    assert (env.num_envs, env.control_freq) == (2, pytest.approx(30))
    obs = env.reset()
    action = load_agent(WALK, env).act(obs)
    assert action.shape == (2, 28)
    assert torch.equal(action, load_agent(f"{WALK}/model.pt", env).act(obs))
    env.close()


def test_what_is_given_goes_before_what_is_brought():
    config = {**CHAR, "engine": {"sim_freq": 240}}
    video = {"width": 100, "enabled": False}
    env = make_env(config, {"engine_name": "mujoco", "control_mode": "pos", "control_freq": 60}, video=video)
    assert env.control_freq == pytest.approx(60)
    assert env.engine.get_sim_timestep() == pytest.approx(1 / 240)
    assert env.engine.get_video_config().width == 100
    env.close()


@pytest.mark.parametrize(("config", "message"), [
    ("data/envs/no_such.yaml", "env_config: no such file"),
    ({"char_file": CHAR["char_file"]}, "env config: env_name is missing"),
    ({**CHAR, "env_name": "deepmimik"}, "env config: env_name: .*did you mean 'deepmimic'"),
    ({**CHAR, "char_file": "no_such.xml"}, "env config: char_file: no such file"),
    ({**CHAR, "epsiode_length": 1}, "env config: unknown key 'epsiode_length'; did you mean 'episode_length'"),
    ({**CHAR, "env_name": 3}, "env config: env_name: expected a name or package.module:Class, found 3"),
])  # fmt: skip
def test_what_can_not_be_built_is_refused_by_name(config, message):
    with pytest.raises(ConfigError, match=message):
        make_env(config)


def test_a_folder_without_a_run_in_it_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"env_config: no such file: .*config\.yaml"):
        make_env(tmp_path)
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"env": CHAR}))
    with pytest.raises(ConfigError, match=r"config\.yaml: engine: expected a block of keys"):
        make_env(tmp_path)
    env = make_env(CHAR)
    with pytest.raises(ConfigError, match=r"config\.yaml: agent: expected a block of keys"):
        load_agent(tmp_path, env)
    with pytest.raises(ModelFileError, match="obs_norm"):
        load_agent(WALK, env)  # of other observations
    env.close()
