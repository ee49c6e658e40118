"""The command line: what is read, what is refused, and with which words."""

import dataclasses
import logging
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mimickit.cli.flags import flags_of
from mimickit.cli.help import flags_table, help_text
from mimickit.cli.options import Mode, Options, all_flags, read_request
from mimickit.config import project_root
from mimickit.util.keys import ConfigError
from mimickit.video.config import VideoConfig


def read(*words):
    return read_request([str(word) for word in words])


def arg_file(tmp_path, text, name="args.txt"):
    file = tmp_path / name
    file.write_text(text)
    return file


# ---------------------------------------------------------------------- values


@pytest.mark.parametrize("word", ["true", "TRUE", "True", "yes", "Yes", "on", "1", None])
def test_every_way_to_say_yes(word):
    words = ["--save_int_models"] if word is None else ["--save_int_models", word]
    assert read(*words).options.save_int_models is True
    assert read(*words, "--mode", "train").options.save_int_models is True
    if word is not None:
        assert read(f"--save_int_models={word}").options.save_int_models is True


@pytest.mark.parametrize("word", ["false", "FALSE", "no", "off", "0"])
def test_every_way_to_say_no(word):
    assert read("--save_int_models", word).options.save_int_models is False


@pytest.mark.parametrize("word", ["maybe", "2", "tru", "-1", "None"])
def test_a_switch_that_is_neither_is_refused(word):
    with pytest.raises(ConfigError, match=f"--save_int_models: expected true or false, found '{word}'"):
        read("--save_int_models", word)
    with pytest.raises(ConfigError, match="--save_int_models: a blank value"):
        read("--save_int_models=")


def test_numbers():
    options = read("--num_envs", "64", "--max_samples", "4e6", "--rand_seed=7").options
    assert (options.num_envs, options.max_samples, options.rand_seed) == (64, 4_000_000, 7)
    assert read("--test_episodes", "inf").options.test_episodes == sys.maxsize
    for words, message in [
        (("--num_envs", "0"), "--num_envs: expected 1 to"),
        (("--num_envs", "1.5"), "--num_envs: expected a whole number, found '1.5'"),
        (("--num_envs", "many"), "--num_envs: expected a number, found 'many'"),
        (("--num_envs", "nan"), "--num_envs: expected a number"),
        (("--num_envs", "inf"), "--num_envs: expected 1 to"),
        (("--num_envs", "1e400"), "--num_envs: expected a whole number, found '1e400'"),
        (("--num_envs", "-inf"), "--num_envs: expected a whole number, found '-inf'"),
        (("--rand_seed", "-1"), "--rand_seed: expected 0 to"),
        (("--master_port", "70000"), "--master_port: expected 1 to 65535"),
    ]:
        with pytest.raises(ConfigError, match=message):
            read(*words)


def test_small_negative_numbers_are_values_not_flags():
    request = read("--env.ref_char_offset", "-1e-3", "-.5", "0", "--agent.actor_init=-2e-2", "--video_fov", "1e1")
    assert request.overrides["env"] == {"ref_char_offset": [-1e-3, -0.5, 0]}
    assert request.overrides["agent"] == {"actor_init": -2e-2}
    assert request.video["fov"].words == ("1e1",)


def test_choices_and_lists():
    options = read("--mode", "TEST", "--logger", "tb", "wandb", "--wandb_tags", "a", "b").options
    assert options.mode is Mode.TEST
    assert options.logger == ("tb", "wandb")
    assert options.wandb_tags == ("a", "b")
    with pytest.raises(ConfigError, match="--mode: found 'tset'; did you mean 'test'"):
        read("--mode", "tset")
    with pytest.raises(ConfigError, match="--logger: found 'comet'; known: tb, txt, wandb"):
        read("--logger", "txt", "comet")
    assert read("--logger", "my_module:MyLogger").options.logger == ("my_module:MyLogger",)


def test_keys_of_yaml_files_can_be_set():
    request = read("--env.episode_length", "5", "--agent.actor_optimizer.learning_rate", "1e-4", "--agent.x", "[1, 2]")
    assert request.overrides == {
        "env": {"episode_length": 5},
        "agent": {"actor_optimizer": {"learning_rate": 1e-4}, "x": [1, 2]},
        "engine": {},
    }


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--vidoe", "true"), "unknown flag '--vidoe'; did you mean 'video'"),
        (("--zzz",), "unknown flag '--zzz'; see --help"),
        (("--evn.x", "1"), "unknown flag '--evn.x'"),
        (("train",), "'train' stands after no flag"),
        (("--num_envs=4", "5"), "'5' stands after no flag"),
        (("-mode", "train"), "'-mode': flags begin with --; did you mean 'mode'"),
        (("--out_dir",), "--out_dir: no value follows"),
        (("--out_dir", "--mode", "train"), "--out_dir: no value follows"),
        (("--out_dir", ""), "--out_dir: a blank value"),
        (("--out_dir=",), "--out_dir: a blank value"),
        (("--out_dir", "my", "runs"), "--out_dir: expected PATH, found 2 values: my runs"),
        (("--env.episode_length",), "--env.episode_length: no value follows"),
        (("--visualize", "true"), "--visualize true: no engine"),
        (("--visualize", "--video"), "--visualize true: no engine.*--video true"),
        (("--devices", "cuda:0", "cuda:1"), "several devices are not supported yet"),
        (("--resume", "x", "--mode", "test"), "--resume: expected --mode train"),
        (("--resume", "x", "--model_file", "y"), "--resume and --model_file"),
        (("--wandb_group", "g"), "--wandb_group has no effect without --logger wandb"),
        (("--mode", "test", "--max_samples", "5"), "--max_samples has no effect in --mode test"),
        (("--video_size", "big"), "--video_size: expected WIDTHxHEIGHT"),
        (("--video_size", "640x480", "--video_width", "3"), "--video_size and --video_width"),
    ],
)
def test_refused(words, message):
    with pytest.raises(ConfigError, match=message):
        read(*words)


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [f"--{name}" for name in all_flags()] + ["--env.a.b", "--agent.", "--x.y", "--", "-", "-1", "="]
        )
        | st.sampled_from(["true", "1e-4", "test", "640x480", "inf", "-1e-3", "tb", "[1", "{a: b}", "x: y", "*", "&a"])
        | st.text(max_size=8),
        max_size=6,
    )
)
def test_whatever_is_typed_is_read_or_refused(words):
    try:
        assert isinstance(read(*words).options, Options)
    except ConfigError as err:
        assert str(err)


# ---------------------------------------------------------------------- arg files


def test_the_command_line_wins_over_arg_files_and_a_later_file_over_an_earlier(tmp_path):
    first = arg_file(tmp_path, "--num_envs 1 --rand_seed 1 --max_samples 1 --logger tb wandb", "first.txt")
    second = arg_file(tmp_path, "--num_envs 2 --rand_seed 2", "second.txt")
    options = read("--num_envs", "3", "--arg_file", first, second, "--logger", "txt").options
    assert (options.num_envs, options.rand_seed, options.max_samples) == (3, 2, 1)
    assert options.logger == ("txt",)


def test_a_duplicate_counts_last_with_a_note(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("mimickit"), "propagate", True)
    file = arg_file(tmp_path, "--num_envs 1\n--num_envs=2\n")
    assert read("--arg_file", file).options.num_envs == 2
    assert "args.txt:2: --num_envs stands twice; the last one counts: 2" in caplog.text


def test_errors_in_an_arg_file_name_its_line(tmp_path):
    for text, message in [
        ("--mode train\n--num_evns 4\n", r"args\.txt:2: unknown flag '--num_evns'; did you mean 'num_envs'"),
        ("--mode\n", r"args\.txt:1: --mode: no value follows"),
        ("--mode train\n\n--num_envs four\n", r"args\.txt:3: --num_envs: expected a number, found 'four'"),
        ("--arg_file other.txt\n", r"args\.txt:1: --arg_file: an arg file can't name another"),
        ("--visualize true\n", r"args\.txt:1: --visualize true"),
    ]:
        with pytest.raises(ConfigError, match=message):
            read("--arg_file", arg_file(tmp_path, text))


def test_an_arg_file_may_hold_what_this_run_has_no_use_for(tmp_path):
    file = arg_file(tmp_path, "--mode train --wandb_group g --visualize true --max_samples 5")
    assert read("--arg_file", file, "--mode", "test", "--visualize", "false").options.mode is Mode.TEST


def test_every_shipped_arg_file_is_understood():
    files = sorted((project_root() / "args").glob("*.txt"))
    assert files
    for file in files:
        assert read("--arg_file", file).options.env_config is not None, file


# ---------------------------------------------------------------------- help


def test_every_field_has_a_flag_and_every_flag_a_meaning():
    flags = all_flags()
    fields = {f"video_{field.name}" for field in dataclasses.fields(VideoConfig)} - {
        "video_enabled",
        "video_out_dir",
    }
    fields |= {field.name for field in dataclasses.fields(Options)}
    assert fields | {"video", "video_size"} == set(flags)
    assert [name for name, flag in flags.items() if not flag.doc] == []
    assert all(f"--{name} " in help_text() for name in flags)


def test_flags_of_the_compatible_command_line_are_all_there():
    names = (
        "mode arg_file engine_config env_config agent_config num_envs visualize video out_dir logger "
        "model_file max_samples test_episodes save_int_models rand_seed devices master_port"
    )
    assert set(names.split()) <= {flag.name for flag in flags_of(Options)} | {"video"}


def test_the_readme_has_the_table_of_flags_that_the_parser_has():
    readme = (project_root() / "README.md").read_text(encoding="utf-8")
    assert flags_table() in readme, "put the output of `python -m mimickit.cli.help` into README.md"
