"""From flags and YAML files to one merged configuration."""

import dataclasses
from pathlib import Path

import pytest
import yaml

from mimickit.cli.options import read_request
from mimickit.cli.settings import load_settings
from mimickit.config import project_root
from mimickit.util.keys import ConfigError
from mimickit.video.config import Quality


@pytest.fixture
def write(tmp_path):
    def write_yaml(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write_yaml


def settings(*words):
    return load_settings(read_request([str(word) for word in words]))


def test_without_any_flag_a_view_plays_the_shipped_clip():
    found = settings("--mode", "view")
    assert found.engine.name("engine_name") == "mujoco"
    assert found.env.name("env_name") == "view_motion"
    assert found.video.enabled
    assert (found.num_envs, found.test_episodes, found.agent) == (1, 1, None)


def test_defaults_of_training():
    found = settings()
    assert Path(found.env.source).resolve() == project_root() / "data/envs/deepmimic_humanoid_walk_env.yaml"
    assert found.agent.name("agent_name") == "PPO"
    assert (found.num_envs, found.test_episodes, found.model_file) == (512, None, None)
    assert not found.video.enabled


def test_precedence_of_engine_file_env_block_arg_file_and_command_line(write):
    engine = write("engine.yaml", {"engine_name": "mujoco", "a": 1, "b": 1, "c": 1, "d": 1, "block": {"x": 1, "y": 1}})
    env = write("env.yaml", {"env_name": "deepmimic", "engine": {"b": 2, "c": 2, "d": 2, "block": {"y": 2}}})
    args = write("args.txt", f"--engine_config {engine} --engine.c 3 --engine.d 3 --env.e 3")
    found = settings("--arg_file", args, "--env_config", env, "--engine.d", "4")
    assert found.engine.values == {
        "engine_name": "mujoco", "a": 1, "b": 2, "c": 3, "d": 4, "block": {"x": 1, "y": 2},
    }  # fmt: skip
    assert found.env.values == {"env_name": "deepmimic", "e": 3}


def test_precedence_of_filming(write):
    engine = write("engine.yaml", {"engine_name": "mujoco", "video": {"width": 100, "height": 100, "fov": 50}})
    env = write("env.yaml", {"env_name": "x", "engine": {"video": {"height": 200, "fov": 60, "quality": "draft"}}})
    files = ("--engine_config", engine, "--env_config", env)
    found = settings(*files, "--video", "--video_fov", "70", "--video_position", "-1e-3", "2", "3").video
    assert (found.enabled, found.width, found.height, found.fov) == (True, 100, 200, 70.0)
    assert (found.quality, found.position) == (Quality.DRAFT, (-1e-3, 2.0, 3.0))
    assert settings(*files, "--video", "--video_position", "1,2,3").video.position == (1.0, 2.0, 3.0)
    found = settings(*files, "--video", "--video_size", "640x360").video
    assert (found.width, found.height) == (640, 360)


@pytest.mark.parametrize("word", ["true", "TRUE", "yes", "1", None])
def test_every_way_to_ask_for_video(word):
    assert settings(*(["--video"] if word is None else ["--video", word])).video.enabled is True


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--video_camera", "orbit"), "--video_camera has no effect without --video true"),
        (("--mode", "view", "--video", "no", "--video_fov", "3"), "--video_fov has no effect"),
        (("--video", "--video_env", "600"), "--video_env: expected an environment below --num_envs 512"),
        (("--video", "--video_fov", "wide"), "command line: --video_fov: expected a number, found 'wide'"),
        (("--video", "--video_quality", "best"), "quality: expected one of draft"),
        (("--env_config", "data/envs/none.yaml"), r"--env_config: no such file: .*none\.yaml"),
        (("--model_file", "none.pt"), r"--model_file: no such file: .*none\.pt"),
        (("--resume", "none"), r"--resume: no such file"),
    ],
)
def test_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        settings(*words)


def test_refused_in_yaml(write):
    for content, message in [
        (
            {"engine_name": "mujoco", "video": {"widht": 3}},
            r"engine\.yaml: video: unknown key 'widht'; did you mean",
        ),
        ({"engine_name": "mujoco", "video": 3}, r"engine\.yaml: video: expected a block of keys, found 3"),
    ]:
        with pytest.raises(ConfigError, match=message):
            settings("--engine_config", write("engine.yaml", content))
    with pytest.raises(ConfigError, match=r"env\.yaml: engine: expected a block of engine keys, found 'mujoco'"):
        settings("--env_config", write("env.yaml", {"env_name": "deepmimic", "engine": "mujoco"}))
    with pytest.raises(ConfigError, match=r"env\.yaml: env_name is missing"):
        settings("--env_config", write("env.yaml", {})).env.name("env_name")


def test_a_model_brings_the_configuration_it_was_trained_with(write, tmp_path):
    model = write("run/model.pt", "")
    blocks = {"engine": {"engine_name": "e"}, "env": {"env_name": "v"}, "agent": {"agent_name": "a"}}
    write("run/config.yaml", blocks)
    found = settings("--mode", "test", "--model_file", model, "--env.x", "1")
    assert (found.engine.values, found.agent.values) == (blocks["engine"], blocks["agent"])
    assert found.env.values == {"env_name": "v", "x": 1}
    assert found.env.source == f"{tmp_path / 'run/config.yaml'} (env)"
    own = settings("--mode", "test", "--model_file", model, "--env_config", write("own.yaml", {"env_name": "own"}))
    assert (own.env.values, own.agent.values) == ({"env_name": "own"}, blocks["agent"])


def test_a_resumed_run_keeps_its_flags_unless_others_are_given(write, tmp_path):
    begun = settings("--num_envs", "64", "--max_samples", "1e6", "--video", "--logger", "tb", "--out_dir", "x")
    write("run/config.yaml", begun.to_dict(["--num_envs", "64"]))
    found = settings("--resume", tmp_path / "run", "--max_samples", "2e6")
    assert (found.num_envs, found.options.max_samples, found.video.enabled) == (64, 2_000_000, True)
    assert found.options.logger == begun.options.logger
    assert found.options.out_dir is None
    assert (found.engine.values, found.env.values, found.agent.values) == (
        begun.engine.values, begun.env.values, begun.agent.values,
    )  # fmt: skip


def test_the_saved_configuration_is_plain_yaml_and_says_everything():
    found = settings("--num_envs", "8", "--video", "--env.episode_length", "2")
    saved = found.to_dict(["--num_envs", "8"])
    assert yaml.safe_load(yaml.safe_dump(saved)) == saved
    assert saved["env"]["episode_length"] == 2
    assert set(saved["video"]) == {field.name for field in dataclasses.fields(found.video)} - {"out_dir"}


def test_every_shipped_configuration_is_read():
    for file in sorted((project_root() / "data" / "envs").glob("*.yaml")):
        assert settings("--env_config", file).env.name("env_name")
    for file in sorted((project_root() / "data" / "agents").glob("*.yaml")):
        assert settings("--agent_config", file).agent.name("agent_name")
