"""--mode sim2sim: one policy on several engines."""

import json
from pathlib import Path

import pytest

from mimickit.cli import main
from mimickit.video.clip import Clip
from mimickit.video.traces.trace import Trace

OWN = "tests.engines.conformance.own_engine:OwnEngine"
SHORT = [
    "--num_envs", "2", "--test_episodes", "2", "--env.episode_length", "0.4",
    "--video_width", "160", "--video_height", "96",
]  # fmt: skip


def test_the_same_policy_from_the_same_start_on_two_engines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mode", "sim2sim", "--engines", f"mujoco,{OWN}", *SHORT, "--out_dir", str(tmp_path)]) == 0
    result = json.loads((tmp_path / "result.json").read_text())
    assert list(result["engines"]) == ["mujoco", "OwnEngine"]
    assert [facts["engine"] for facts in result["engines"].values()] == ["mujoco", OWN]
    errors = [facts["body_pos_err_m"] for facts in result["engines"].values()]
    assert errors[0] == pytest.approx(errors[1], abs=1e-3)
    assert result["apart_m"]["OwnEngine"]["0s"] < 1e-4
    clip = Clip.load(tmp_path / "sim2sim.json")
    assert result["film"] == [clip.path.name]
    assert clip.num_frames == 13
    out = capsys.readouterr().out
    assert "| measure | mujoco | OwnEngine |" in out
    assert "| m from mujoco after 0s | 0 |" in out
    for label in ("mujoco", "OwnEngine"):
        (trace,) = (tmp_path / label / "videos").glob("*.trace")
        with Trace(trace) as recorded:
            assert recorded.engine == {"mujoco": "mujoco", "OwnEngine": "own"}[label]


def test_without_a_film_there_is_the_table_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--num_envs", "1", "--test_episodes", "1", "--env.episode_length", "0.2", "--video", "false"]
    assert main(["--mode", "sim2sim", "--engines", "mujoco", OWN, *words, "--out_dir", str(tmp_path)]) == 0
    assert "| body_pos_err_m |" in capsys.readouterr().out
    assert not list(tmp_path.rglob("*.mp4"))


def test_an_engine_file_may_be_named(tmp_path: Path) -> None:
    slow = tmp_path / "coarse_engine.yaml"
    slow.write_text(f"engine_name: {OWN}\ncontrol_mode: pos\ncontrol_freq: 30\nsim_freq: 60\n")
    words = ["--num_envs", "1", "--test_episodes", "1", "--env.episode_length", "0.2", "--video", "false"]
    out = tmp_path / "out"
    assert main(["--mode", "sim2sim", "--engines", f"mujoco,{slow}", *words, "--out_dir", str(out)]) == 0
    assert list(json.loads((out / "result.json").read_text())["engines"]) == ["mujoco", "coarse"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--engines: expected two or more engines"),
        (["--engines", "mujoco"], "--engines: expected two or more engines"),
        (["--engines", "mujoco,mujoco"], "each once"),
        (["--engines", "mujoco,mujocco"], "--engines: unknown engine 'mujocco'"),
        (["--engines", "mujoco", "nowhere.yaml"], "--engines: no such file"),
        (["--engines", "mujoco,tests.house.test_sim2sim:SHORT"], "expected a subclass of mimickit.engines"),
    ],
)
def test_what_is_refused(words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mode", "sim2sim", *words, *SHORT, "--out_dir", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())  # nothing was simulated before


def test_engines_belong_to_no_other_mode(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--mode", "test", "--engines", "mujoco,newton"]) == 2
    assert "--engines has no effect in --mode test" in capsys.readouterr().err
