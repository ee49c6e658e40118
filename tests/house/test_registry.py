"""Names of classes, built in and anybody's own."""

import sys

import pytest

from mimickit.registry import BUILT_IN, Kind, load_object, resolve
from mimickit.util.keys import ConfigError


def test_every_built_in_name_resolves():
    for kind, table in BUILT_IN.items():
        for name in table:
            assert isinstance(resolve(kind, name), type), (kind, name)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(ConfigError, match=r"env\.yaml: env_name: unknown env 'deepmimik'; did you mean 'deepmimic'"):
        resolve(Kind.ENV, "deepmimik", "env.yaml: env_name")
    with pytest.raises(ConfigError, match=r"unknown engine 'isaac_gym'; did.*'isaac_lab'.*package\.module:Class"):
        resolve(Kind.ENGINE, "isaac_gym")


def test_anybodys_own_class_in_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "my_parts_of_mine.py").write_text("class Env:\n    class Inner: pass\n")
    (tmp_path / "my_broken_parts.py").write_text("import no_such_library_anywhere\n")
    monkeypatch.chdir(tmp_path)
    try:
        assert resolve(Kind.ENV, "my_parts_of_mine:Env").__name__ == "Env"
        assert load_object("my_parts_of_mine:Env.Inner").__name__ == "Inner"
        with pytest.raises(ConfigError, match="'my_parts_of_mine' has no 'Evn'"):
            resolve(Kind.ENV, "my_parts_of_mine:Evn")
        with pytest.raises(ConfigError, match="no module named 'my_missing_parts'"):
            resolve(Kind.ENV, "my_missing_parts:Env")
        with pytest.raises(ModuleNotFoundError, match="no_such_library_anywhere"):
            resolve(Kind.ENV, "my_broken_parts:Env")
    finally:
        sys.modules.pop("my_parts_of_mine", None)
