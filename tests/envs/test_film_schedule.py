"""Which tests and which episodes of training are filmed, from flags to files."""

import json

import pytest

from mimickit.cli import main
from mimickit.envs.film_schedule import FilmSchedule
from mimickit.video.config import VideoConfig

WORDS = "--mode train --num_envs 4 --max_samples 384 --video true --video_size 64x48 --video_quality draft"
SHORT = "--env.episode_length 0.2 --agent.iters_per_output 2"  # an iteration is 64 samples: 6 of them, 3 tests


def clips_of(tmp_path, words):
    """Names of the clips and result of a training."""
    given = f"{WORDS} {SHORT} --agent.test_episodes 4 {words}".split()
    assert main([*given, "--out_dir", str(tmp_path / "run")]) == 0
    clips = sorted(path.stem.removeprefix("humanoid_walk_") for path in (tmp_path / "run" / "videos").glob("*.mp4"))
    return clips, json.loads((tmp_path / "run" / "result.json").read_text())


@pytest.mark.parametrize(("words", "samples"), [
    ("", [128, 256, 384]),
    ("--video_every 2", [128, 384]),
    ("--video_every 3", [128]),
    ("--video_every 3 --video_final", [128, 384]),
    ("--video_every 0 --video_final", [384]),
])  # fmt: skip
def test_every_and_final(tmp_path, words, samples):
    clips, result = clips_of(tmp_path, words)
    assert clips == [f"{count:012d}" for count in samples]
    assert ("test_video" in result["episode_media"]) == (384 in samples)


def test_a_training_without_tests_makes_one_for_its_final_film(tmp_path):
    clips, result = clips_of(tmp_path, "--video_final --agent.test_episodes 0")
    assert clips[-1] == "000000000384"
    assert result["num_eps"] > 0


def test_training_itself_is_filmed_between_tests(tmp_path):
    clips, _ = clips_of(tmp_path, "--video_every 0 --video_train_every 150")
    assert clips == ["train_000000000000", "train_000000000192"]
    folder = tmp_path / "run" / "videos"
    episodes = [json.loads(path.read_text())["episodes"] for path in sorted(folder.glob("*.json"))]
    assert all(len(shown) == 1 and shown[0]["outcome"] in ("time", "fail") for shown in episodes)


def test_the_schedule():
    schedule = FilmSchedule(VideoConfig(every=0, final=True, train_every=100))
    assert [schedule.takes_test(is_last=last) for last in (False, False, True)] == [False, False, True]
    filmed = []
    for samples in (0, 50, 120, 130, 250):
        schedule.see_progress(samples)
        filmed += [schedule.takes_episode(), schedule.takes_episode()]
    assert filmed == [True, False, False, False, True, False, False, False, True, False]


def test_flags_of_training_are_refused_elsewhere(capsys):
    for flag in ("--video_final", "--video_train_every 5"):
        assert main(["--mode", "test", "--video", "true", *flag.split()]) == 2
        assert "has no effect in --mode test" in capsys.readouterr().err
