"""Arg files and YAML: every way in which people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mimickit import config
from mimickit.config import (
    find_path,
    load_yaml,
    merge,
    nest,
    parse_yaml,
    project_root,
    read_arg_file,
    split_line,
)
from mimickit.util.keys import ConfigError


def texts(line):
    return [word.text for word in split_line(line, "file:1")]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--mode train", ["--mode", "train"]),
        ("   \t--mode   train  ", ["--mode", "train"]),
        ("--num_envs 4 # on a laptop", ["--num_envs", "4"]),
        ("# nothing here", []),
        ("    # indented comment with a 'quote", []),
        ("", []),
        ("--out_dir 'my runs/walk #1'", ["--out_dir", "my runs/walk #1"]),
        ('--out_dir "C:\\runs\\new"', ["--out_dir", "C:\\runs\\new"]),
        ("--out_dir C:\\runs\\new", ["--out_dir", "C:\\runs\\new"]),
        ("--out_dir run#2", ["--out_dir", "run#2"]),
        ("--out_dir='my runs'/a", ["--out_dir=my runs/a"]),
        ('--run_name "it\'s"', ["--run_name", "it's"]),
        ("--run_name ''", ["--run_name", ""]),
    ],
)
def test_a_line_of_an_arg_file(line, words):
    assert texts(line) == words


@given(st.lists(st.text(st.characters(blacklist_characters="'\r\n", blacklist_categories=("Cs", "Zl", "Zp", "Cc")))))
def test_quoted_words_come_back_as_they_are(words):
    assert texts(" ".join(f"'{word}'" for word in words)) == words


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_mark_mean_nothing(tmp_path, end, mark):
    file = tmp_path / "args.txt"
    file.write_bytes(mark + f"--mode test{end}  --num_envs 4  # few{end}{end}--video".encode())
    words = read_arg_file(file)
    assert [word.text for word in words] == ["--mode", "test", "--num_envs", "4", "--video"]
    assert [word.source for word in words] == [f"{file}:{n}" for n in (1, 1, 2, 2, 4)]


def test_a_quote_left_open_is_refused_with_its_line(tmp_path):
    file = tmp_path / "args.txt"
    file.write_text("--mode test\n--out_dir 'half\n")
    with pytest.raises(ConfigError, match=r"args\.txt:2: quote ' is not closed"):
        read_arg_file(file)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    file = tmp_path / "args.txt"
    file.write_bytes(b"--mode \xff\xfe")
    with pytest.raises(ConfigError, match="expected text in UTF-8"):
        read_arg_file(file)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-4", 1e-4),
        ("-1e-3", -1e-3),
        ("1E5", 1e5),
        ("2.5e3", 2500.0),
        ("1.e2", 100.0),
        ("3", 3),
        ("0.1", 0.1),
    ],
)
def test_numbers_in_yaml_are_numbers(text, value):
    found = parse_yaml(f"x: {text}", "file")["x"]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["'1e-4'", "e4", "1e", "a1e4", "1e4x"])
def test_other_words_in_yaml_stay_words(text):
    assert parse_yaml(f"x: {text}", "file")["x"] == text.strip("'")


def test_yaml_errors_name_file_and_line(tmp_path):
    file = tmp_path / "env.yaml"
    for text, message in [
        ("a: 1\nb: [1, 2\n", r"env\.yaml:\d"),
        ("a: 1\nb: 2\na: 3\n", r"env\.yaml:3: key 'a' stands twice"),
        ("- a\n- b\n", r"env\.yaml: expected 'key: value' lines, found list"),
        ("just words\n", r"env\.yaml: expected 'key: value' lines, found str"),
        ("1: 2\n", r"env\.yaml: expected"),
        ("a: !!python/object/apply:os.system ['true']\n", r"env\.yaml:1"),
    ]:
        file.write_text(text)
        with pytest.raises(ConfigError, match=message):
            load_yaml(file)


def test_an_empty_yaml_file_is_an_empty_mapping(tmp_path):
    (tmp_path / "env.yaml").write_text("# nothing\n")
    assert load_yaml(tmp_path / "env.yaml") == {}


def test_blocks_are_merged_and_lists_replaced():
    base = {"a": 1, "block": {"x": 1, "y": 2}, "list": [1, 2]}
    over = {"block": {"y": 3, "z": 4}, "list": [5], "b": 2}
    assert merge(base, over) == {"a": 1, "block": {"x": 1, "y": 3, "z": 4}, "list": [5], "b": 2}
    assert base["block"] == {"x": 1, "y": 2}
    assert nest(["a", "b"], 1) == {"a": {"b": 1}}


def test_paths_are_looked_up_in_the_working_directory_then_in_the_project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert find_path("data/engines/mujoco_engine.yaml", "x") == project_root() / "data/engines/mujoco_engine.yaml"
    own = tmp_path / "data/engines/mujoco_engine.yaml"
    own.parent.mkdir(parents=True)
    own.touch()
    assert find_path("data/engines/mujoco_engine.yaml", "x").resolve() == own
    with pytest.raises(ConfigError, match=r"--env_config: no such file: .*nothing\.yaml or .*nothing\.yaml"):
        find_path("nothing.yaml", "--env_config")


def test_an_installed_package_finds_its_own_data(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "PACKAGE_DIR", tmp_path / "site-packages" / "mimickit")
    assert project_root() == tmp_path / "site-packages" / "mimickit"
