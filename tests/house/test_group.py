"""A group of trainings: planned, run one after the other, gone on with, and shown on one page."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import cv2
import numpy as np
import pytest

from mimickit.cli import main
from mimickit.cli.group import Member, _quoted, plan_group
from mimickit.cli.options import read_request
from mimickit.config import project_root, split_line
from tests.house.wandb_reader import read_history, read_run
from tests.video.browser import Browser, require_browser

ROOT = project_root()
SHORT = ["--num_envs", "4", "--max_samples", "64", "--agent.iters_per_output", "1", "--test_episodes", "4",
         "--agent.steps_per_iter", "8", "--env.episode_length", "0.4"]  # fmt: skip
FILM = ["--video", "--video_size", "160x120", "--video_quality", "draft"]


def plan(*words, folder="group"):
    request = read_request(["--mode", "group", *words])
    return plan_group(request, ROOT / folder)


def test_every_variant_runs_with_every_seed(tmp_path):
    for name, discount in (("near", "0.9"), ("far", "0.99")):
        (tmp_path / f"{name}.txt").write_text(f"--agent.discount {discount}  # a variant\n")
    variants = ["--variants", str(tmp_path / "near.txt"), str(tmp_path / "far.txt")]
    members = plan(*SHORT, "--seeds", "3,5", *variants, "--agent.discount", "0.5", "--logger", "wandb")
    assert [member.name for member in members] == ["near_seed3", "near_seed5", "far_seed3", "far_seed5"]
    assert [member.flags["agent.discount"] for member in members] == [("0.9",)] * 2 + [("0.99",)] * 2
    assert [member.flags["rand_seed"] for member in members] == [("3",), ("5",)] * 2
    assert {member.flags["wandb_group"] for member in members} == {("group",)}
    assert len({member.flags["run_name"] for member in members}) == 4
    assert all(member.flags["num_envs"] == ("4",) for member in members)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "--max_samples is missing"),
        ([*SHORT, "--seeds", "1,1"], "--seeds: expected different seeds"),
        ([*SHORT, "--seeds", "-1"], "--seeds: expected different seeds from 0"),
        ([*SHORT, "--seeds", "one"], "--seeds: expected a number, found 'one'"),
        ([*SHORT, "--video", "--video_env", "9"], "seed0: .*expected an environment below --num_envs 4, found 9"),
        ([*SHORT, "--resume", "x"], "--resume: expected --mode train"),
        ([*SHORT, "--variants", "nowhere.txt"], "no such file"),
    ],
)
def test_mistakes_are_told_before_anything_is_run(tmp_path, capsys, words, said):
    assert main(["--mode", "group", *words, "--out_dir", str(tmp_path / "group")]) == 2
    assert re.search(said, capsys.readouterr().err)


def test_seeds_and_variants_belong_to_groups(capsys):
    assert main(["--mode", "train", "--seeds", "1"]) == 2
    assert "--seeds has no effect in --mode train" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["plain", "two words", "it's", 'a "b" c', "#no", """both ' and " in one""", "a=b#c"])
def test_arg_files_hold_any_word(word):
    assert [found.text for found in split_line(f"--x {_quoted(word)}", "here")] == ["--x", word]


@pytest.fixture(scope="module")
def group(tmp_path_factory):
    """Two seeds with films, in one W&B group, offline."""
    root = tmp_path_factory.mktemp("group") / "walks"
    words = ["--mode", "group", "--seeds", "0,1", *SHORT, *FILM, "--logger", "wandb", "--wandb_mode", "offline"]
    command = [sys.executable, str(ROOT / "run.py"), *words, "--out_dir", str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=200)
    assert done.returncode == 0, done.stderr
    assert str(root / "index.html") in done.stdout
    return root


def test_the_runs_are_one_group_of_wandb_with_the_same_keys(group):
    runs = [read_run(group / name) for name in ("seed0", "seed1")]
    assert [run.display_name for run in runs] == ["walks_seed0", "walks_seed1"]
    assert {run.run_group for run in runs} == {"walks"}
    keys = [{key for row in read_history(group / name) for key in row} for name in ("seed0", "seed1")]
    assert keys[0] == keys[1]
    assert "test_video/path" in keys[0]


def test_what_is_finished_is_not_run_again(group):
    words = ["--mode", "group", "--seeds", "0,1", *SHORT, *FILM, "--logger", "wandb", "--wandb_mode", "offline"]
    before = {path: path.stat().st_mtime_ns for path in group.glob("seed*/result.json")}
    assert main([*words, "--out_dir", str(group)]) == 0
    assert {path: path.stat().st_mtime_ns for path in group.glob("seed*/result.json")} == before


def test_the_page_shows_both_side_by_side_and_plays_them_in_step(group, tmp_path):
    require_browser()
    browser = Browser(tmp_path / "browser", size=(1000, 900))
    browser.go_offline()
    browser.open(group / "index.html")
    browser.wait_for("films().length === 2 && films().every((film) => film.readyState >= 2)")
    names = "[...document.querySelectorAll('details[open] figure[data-run] b')].map((name) => name.textContent)"
    assert browser.evaluate(names) == ["seed0", "seed1"]
    tops = "films().map((film) => Math.round(film.getBoundingClientRect().top))"
    assert len(set(browser.evaluate(tops))) == 1, "side by side"

    browser.evaluate("document.getElementById('play').click()")
    browser.wait_for("films().every((film) => film.currentTime > 0.1)")
    browser.evaluate("document.getElementById('play').click()")
    times = browser.evaluate("films().map((film) => film.currentTime)")
    assert times[0] == pytest.approx(times[1], abs=0.01), "paused at one time"
    scrub = "(() => { const time = document.getElementById('time'); time.value = 0.2;"
    browser.evaluate(f"{scrub} time.dispatchEvent(new Event('input')); }})()")
    browser.wait_for("films().every((film) => !film.seeking && Math.abs(film.currentTime - 0.2) < 0.01)")

    sources = "films().map((film) => film.getAttribute('src'))"
    newest = browser.evaluate(sources)
    assert all("000000000064" in source for source in newest)
    moment = "(() => { const moment = document.getElementById('moment'); moment.value = 0;"
    browser.evaluate(f"{moment} moment.dispatchEvent(new Event('input')); }})()")
    browser.wait_for("films().length === 2")
    assert all("000000000032" in source for source in browser.evaluate(sources))

    picture = browser.screenshot()
    cv2.imwrite(str(tmp_path / "page.png"), picture[..., ::-1])
    boxes = browser.evaluate("films().map((film) => { const r = film.getBoundingClientRect(); return [r.top, r.left, "
                             "r.bottom, r.right].map(Math.round); })")  # fmt: skip
    for top, left, bottom, right in boxes:
        assert np.ptp(picture[top + 5 : bottom - 5, left + 5 : right - 5].reshape(-1, 3), axis=0).min() > 60
    assert browser.evaluate("document.querySelectorAll('svg polyline').length") >= 20
    assert "mean ± std" in browser.evaluate("document.getElementById('figures').textContent")
    assert "rand_seed" in browser.evaluate("document.getElementById('settings').textContent")
    assert all(address.startswith(("file:", "data:")) for address in browser.requests)
    assert browser.complaints == []
    browser.close()


def test_compare_makes_the_same_page_of_any_runs(group, tmp_path, capsys):
    page = tmp_path / "here" / "page.html"
    words = ["--mode", "compare", "--runs", str(group), "--page", str(page), "--labels", "first", "second"]
    assert main(words) == 0
    assert str(page) in capsys.readouterr().out
    text = page.read_text()
    assert "<b>first</b>" in text
    assert "seed1/videos/" in text
    assert main(["--mode", "compare", "--runs", str(tmp_path), "--page", str(page)]) == 2
    assert "expected the folder of a run or of a group" in capsys.readouterr().err
    assert main([*words, "--video_fov", "30"]) == 2
    assert "--video_fov has no effect with --page" in capsys.readouterr().err


def test_ctrl_c_ends_the_run_under_way_and_the_same_command_goes_on(tmp_path):
    root = tmp_path / "group"
    words = ["--mode", "group", "--seeds", "0,1", *SHORT, "--out_dir", str(root)]
    words[words.index("--max_samples") + 1] = "1000000"
    command = [sys.executable, str(ROOT / "run.py")]
    process = subprocess.Popen([*command, *words], cwd=ROOT, start_new_session=True, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while not (root / "seed0" / "checkpoint.pt").is_file():
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    result = json.loads((root / "seed0" / "result.json").read_text())
    assert result["interrupted"]
    assert (root / "index.html").is_file()
    assert not (root / "seed1").exists()
    taken = result["samples"]
    config = root / "seed0" / "config.yaml"
    config.write_text(config.read_text().replace("'1000000'", f"'{taken + 32}'"))
    words[words.index("1000000")] = "64"
    for name in ("seed0", "seed1"):  # as if that had been asked for from the first
        file = root / f"{name}.txt"
        file.write_text(file.read_text().replace("1000000", "64"))
    assert subprocess.run([*command, *words], cwd=ROOT, check=False, capture_output=True).returncode == 0
    results = [json.loads((root / name / "result.json").read_text()) for name in ("seed0", "seed1")]
    assert [result["samples"] for result in results] == [taken + 32, 64]
    assert not any(result.get("interrupted") for result in results)


def test_a_group_that_has_begun_keeps_its_flags(group, capsys):
    words = ["--mode", "group", "--seeds", "0,1", *SHORT, *FILM, "--logger", "wandb", "--wandb_mode", "offline"]
    before = (group / "seed0.txt").read_text()
    assert main([*words, "--max_samples", "128", "--out_dir", str(group)]) == 2
    told = capsys.readouterr().err
    for part in ("seed0.txt", "--max_samples 64", "--max_samples 128"):
        assert part in told
    assert (group / "seed0.txt").read_text() == before


def test_a_run_that_fails_stops_no_other(tmp_path, monkeypatch, caplog):
    from mimickit.cli import group as module

    ran = []

    def run_member(member: Member) -> int:
        ran.append(member.name)
        return 1 if member.name == "seed0" else 0

    monkeypatch.setattr(module, "_run", run_member)
    assert main(["--mode", "group", *SHORT, "--seeds", "0,1", "--out_dir", str(tmp_path)]) == 1
    assert ran == ["seed0", "seed1"]
