"""An error names what really set the key that it is about: a flag, an arg file's line, a block of another file."""

import sys

import pytest
import yaml

from mimickit.cli import main

ENV = {"env_name": "char_dof_test", "char_file": "data/assets/humanoid/humanoid.xml"}
VIEW = ("--mode", "view", "--env_config", "data/envs/char_dof_test_humanoid_env.yaml")
TRAIN = ("--num_envs", "1")
ENGINE_FILE = "data/engines/mujoco_engine.yaml"


@pytest.fixture
def error(tmp_path, capsys):
    """A function that runs a command line which is refused, leaves nothing behind, and returns its error."""

    def refused(*words):
        assert main([*(str(word) for word in words), "--out_dir", str(tmp_path / "run")]) == 2
        assert not (tmp_path / "run").exists()
        return capsys.readouterr().err.splitlines()[-1].removeprefix("error: ")

    return refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*VIEW, "--env.episode_length", "x"), "--env.episode_length: expected a number, found 'x'"),
        ((*VIEW, "--env.char_fiel", "x"), "--env.char_fiel: unknown key 'char_fiel'; did you mean 'char_file'?"),
        ((*VIEW, "--env.env_name", "3"), "--env.env_name: expected a name or package.module:Class, found 3"),
        ((*VIEW, "--env.char_file", "no.xml"), "--env.char_file: no such file: "),
        ((*VIEW, "--env.objects", "[{file: no.xml}]"), "--env.objects: file: no such file: "),
        ((*VIEW, "--env.engine.control_mode", "fast"), "--env.engine.control_mode: found 'fast'; known: "),
        ((*VIEW, "--engine.control_mode", "fast"), "--engine.control_mode: found 'fast'; known: "),
        ((*VIEW, "--engine.video.fov", "500"), "--engine.video.fov: expected 1 to 170 degrees, found 500"),
        ((*VIEW, "--engine.video", "3"), "--engine.video: expected a block of keys, found 3"),
        ((*VIEW, "--video_fov", "wide"), "--video_fov: expected a number, found 'wide'"),
        ((*VIEW, "--video_env", "-1"), "--video_env: expected 0 or more, found -1"),
        ((*VIEW, "--video_env", "1"), "--video_env: expected an environment below --num_envs 1, found 1"),
        ((*VIEW, "--video_size", "3x40"), "--video_size: width: expected 16 to 7680 pixels, found 3"),
        ((*VIEW, "--video_camera", "orbti"), "--video_camera: found 'orbti'; did you mean 'orbit'?"),
        ((*TRAIN, "--agent.discount", "2"), "--agent.discount: expected 0 to 1, found 2"),
        ((*TRAIN, "--agent.model.actor_net", "fc"), "--agent.model.actor_net: expected fc_{n}layers_{m}units"),
        ((*TRAIN, "--agent.model.actr_net", "fc"), "--agent.model.actr_net: model: unknown key 'actr_net'; did you"),
        ((*TRAIN, "--agent.model.activation", "sine"), "--agent.model.activation: found 'sine'; known: elu, relu"),
        ((*VIEW, "--logger", "yaml:Loader"), "--logger: 'yaml:Loader': expected a subclass of mimickit.loggers."),
        ((*VIEW, "--devices", "cuda:99"), "--devices: found 'cuda:99', but torch sees "),
    ],
)
def test_a_flag(error, words, message):
    assert error(*words).startswith(f"command line: {message}")


def test_an_arg_file_and_its_line(error, tmp_path):
    file = tmp_path / "args.txt"
    file.write_text("# a view\n--mode view\n--env.episode_length long  # seconds\n--video_fov 45\n")
    assert error("--arg_file", file) == f"{file}:3: --env.episode_length: expected a number, found 'long'"
    file.write_text("--mode view\n\n--video_fov 450\n")
    assert error("--arg_file", file) == f"{file}:3: --video_fov: expected 1 to 170 degrees, found 450"
    file.write_text("--mode view --env_config no.yaml")
    assert error("--arg_file", file).startswith(f"{file}:1: --env_config: no such file: ")


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"sim_frq": 3}, "engine: unknown key 'sim_frq'; did you mean 'sim_freq'?"),
        ({"control_mode": "fast"}, "engine: control_mode: found 'fast'; known: none, pd_explicit, pos, torque, vel"),
        ({"video": {"fov": 500}}, "engine: video: fov: expected 1 to 170 degrees, found 500"),
        ({"video": {"fvo": 50}}, "engine: video: unknown key 'fvo'; did you mean 'fov'?"),
        (3, "engine: expected a block of engine keys, found 3"),
    ],
)
def test_the_engine_block_of_an_environment(error, tmp_path, engine, message):
    file = tmp_path / "env.yaml"
    file.write_text(yaml.safe_dump({**ENV, "engine": engine}))
    assert error("--mode", "view", "--env_config", file) == f"{file}: {message}"


def test_a_value_that_is_wrong_beside_another_names_both(error, tmp_path):
    text = f"{ENGINE_FILE}: sim_freq: expected a whole multiple of control_freq (7 Hz), found 120 Hz"
    assert error(*VIEW, "--engine.control_freq", 7) == f"{text} (see command line: --engine.control_freq)"
    file = tmp_path / "env.yaml"
    file.write_text(yaml.safe_dump({**ENV, "engine": {"control_freq": 7}}))
    assert error("--mode", "view", "--env_config", file) == f"{text} (see {file}: engine)"


def test_a_file_is_blamed_for_what_it_says_itself(error, tmp_path):
    file = tmp_path / "env.yaml"
    file.write_text(yaml.safe_dump({**ENV, "episode_length": "long", "engine": {"sim_freq": 240}}))
    words = ("--mode", "view", "--env_config", file, "--env.camera_mode", "still", "--video_fov", 50)
    assert error(*words) == f"{file}: episode_length: expected a number, found 'long'"


PARTS = """
from mimickit.envs.base_env import BaseEnv

def function():
    pass

class NoEnv:
    pass

class HalfEnv(BaseEnv):
    pass

class OddEnv(BaseEnv):
    def __init__(self, config):
        pass

    def reset(self, env_ids=None):
        pass

    def step(self, action):
        pass
"""


@pytest.mark.parametrize(
    ("flag", "name", "message"),
    [
        ("--env.env_name", "NoEnv", "expected a subclass of mimickit.envs.base_env:BaseEnv, found the class NoEnv"),
        ("--env.env_name", "function", "expected a subclass of mimickit.envs.base_env:BaseEnv, found function"),
        ("--env.env_name", "HalfEnv", "expected a complete class, it lacks reset, step"),
        ("--env.env_name", "OddEnv", "OddEnv.__init__ doesn't take what it is given: too many positional arguments"),
        ("--engine.engine_name", "OddEnv", "expected a subclass of mimickit.engines.engine:Engine, found the class"),
        ("--agent.agent_name", "OddEnv", "expected a subclass of mimickit.learning.base_agent:BaseAgent, found the"),
        ("--logger", "OddEnv", "expected a subclass of mimickit.loggers.base:Logger, found the class OddEnv"),
        ("--agent.model.actor_net", "function", "expected a function of the input's size: too many positional"),
    ],
)
def test_a_class_that_is_none_of_the_kind(error, tmp_path, monkeypatch, flag, name, message):
    (tmp_path / "my_odd_parts.py").write_text(PARTS)
    monkeypatch.syspath_prepend(tmp_path)
    try:
        words = TRAIN if "agent" in flag else VIEW
        assert error(*words, flag, f"my_odd_parts:{name}").startswith(
            f"command line: {flag}: 'my_odd_parts:{name}': {message}"
        )
    finally:
        sys.modules.pop("my_odd_parts", None)
