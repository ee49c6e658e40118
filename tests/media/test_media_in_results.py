"""Whole runs with callbacks, from the command line: results, run folder, W&B and TensorBoard hold what was attached."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image as PillowImage
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from mimickit.cli import main
from mimickit.config import project_root
from mimickit.loggers.text_logger import read_rows
from tests.house.wandb_reader import read_history, read_records, read_run
from tests.media.attaching import COLORS, FPS, Attach
from tests.video.films import read_frames

KINDS = {
    "clip": "video", "picture": "image", "counts": "histogram", "page": "html", "note": "file", "wandb_clip": "video",
}  # fmt: skip
SMALL = ["--video", "--video_size", "128x96", "--video_quality", "draft"]
STEPS = (64, 128)  # samples at which the two iterations end


def run(*words):
    return main([str(word) for word in words])


def train_words(folder, *, iters_per_output=2):
    """Two iterations on two motions, whose episodes are as long as an iteration."""
    motions = [{"file": str(project_root() / f"data/motions/humanoid/{name}.npz")} for name in COLORS]
    (folder / "two.yaml").write_text(yaml.safe_dump({"motions": motions}))
    return [
        "--num_envs", 4, "--max_samples", 128, "--agent.iters_per_output", iters_per_output, "--test_episodes", 4,
        "--agent.steps_per_iter", 16, "--env.episode_length", 0.5, "--env.motion_file", folder / "two.yaml",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run folder of a training with all loggers, and the results that its callbacks saw."""
    folder = tmp_path_factory.mktemp("attached")
    Attach.results.clear()
    callbacks = ["--callbacks", "tests.media.attaching:Attach", "note=ended", "tests.media.attaching:Plain"]
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("WANDB_API_KEY", raising=False)
        words = [*train_words(folder), *callbacks, *SMALL, "--logger", "tb", "wandb", "--wandb_mode", "offline"]
        assert run(*words, "--wandb_model", "--out_dir", folder / "run") == 0
    return folder / "run", list(Attach.results)


def names(result):
    return {(name, type(item).KIND) for name, items in result["episode_media"].items() for item in items}


def expected(motions):
    return {(f"{motion}/{name}", kind) for motion in motions for name, kind in KINDS.items()}


def test_all_of_it_is_in_the_results_of_training_and_of_tests(trained):
    folder, results = trained
    assert [kind for kind, _ in results] == ["train", "train", "test"]
    training = set.union(*(names(result) for kind, result in results if kind == "train"))
    assert training <= expected(COLORS)
    assert {kind for _, kind in training} == set(KINDS.values())
    test = names(results[-1][1])
    assert test == expected(COLORS) | {("test_picture", "image"), ("plain", "file"), ("test_video", "video")}
    for _, result in results:
        for items in result["episode_media"].values():
            assert all(item.path.is_relative_to(folder) and item.path.is_file() for item in items)
    written = json.loads((folder / "result.json").read_text())["episode_media"]
    assert set(written) == {name for name, _ in names(results[1][1]) | test}


def test_all_of_it_is_on_disk_and_plays(trained):
    folder, results = trained
    rows = read_rows(folder / "log.jsonl")
    items = [(name, item) for row in rows for name, found in row.get("media", {}).items() for item in found]
    assert len(items) == sum(len(found) for _, result in results for found in result["episode_media"].values())
    seen = set()
    for name, item in items:
        path = folder / item["path"]
        motion, _, kind = name.rpartition("/")
        seen.add(kind)
        if kind in ("clip", "wandb_clip"):
            frames = read_frames(path)
            assert len(frames) == 12
            assert (item["fps"], item["num_frames"]) == (FPS, 12)
            assert np.abs(frames[5].mean(axis=(0, 1)) - COLORS[motion]).max() < 25
        elif kind == "note":
            assert path.read_text().startswith("ended: ")
    assert seen >= set(KINDS)


def test_all_of_it_is_in_the_offline_run_of_wandb(trained):
    folder, results = trained
    rows = read_history(folder)
    (files,) = folder.glob("wandb/offline-run-*/files")
    at = {}
    for row in rows:
        for key in row:
            if key.endswith(("/path", "/note", "/plain")) or key.startswith("plain"):
                at.setdefault(key.removesuffix("/path"), []).append((row["samples"], files / str(row[key])))
    for _, (kind, result) in enumerate(results):
        samples = result["samples"] if kind == "train" else STEPS[1]
        for name, items in result["episode_media"].items():
            if type(items[0]).KIND in ("video", "image", "file") and len(items) == 1:
                assert samples in [step for step, _ in at[name]], name
    for name, found in at.items():
        for _, path in found:
            assert path.is_file(), (name, path)
            if path.suffix == ".mp4":
                assert read_frames(path)
    histograms = [key for row in rows for key in row if key.endswith("counts/_type")]
    assert histograms
    assert [row["samples"] for row in rows if "update/actor_loss" in row] == list(STEPS)
    assert [row["_step"] for row in rows] == list(range(len(rows)))
    assert read_run(folder).display_name == "run"
    artifacts = [record.request for record in read_records(folder) if record.HasField("artifact")]
    assert artifacts, "the model is an artifact of the run"


def test_all_of_it_is_in_tensorboards_event_file(trained):
    folder, _ = trained
    events = EventAccumulator(str(folder), size_guidance={"images": 0, "tensors": 0, "histograms": 0})
    events.Reload()
    tags = events.Tags()
    for motion, color in COLORS.items():
        for name in ("clip", "wandb_clip"):
            event = events.Images(f"{motion}/{name}")[-1]
            assert event.step in STEPS
            gif = PillowImage.open(io.BytesIO(event.encoded_image_string))
            assert (gif.n_frames, gif.info["duration"]) == (12, 1000 / FPS)
            assert np.abs(np.asarray(gif.convert("RGB")).mean(axis=(0, 1)) - color).max() < 25
        picture = PillowImage.open(io.BytesIO(events.Images(f"{motion}/picture")[-1].encoded_image_string))
        assert picture.getpixel((3, 3)) == color
        assert f"{motion}/counts" in tags["histograms"]
        text = events.Tensors(f"{motion}/note/text_summary")[-1].tensor_proto.string_val[0].decode()
        assert Path(text.split()[-1]).is_file()
    bins = events.Histograms("humanoid_walk/counts")[-1].histogram_value
    assert bins.num == sum(bins.bucket) > 0


def test_the_page_of_the_run_shows_films_curves_and_files(trained):
    folder, _ = trained
    page = (folder / "index.html").read_text()
    for words in ("humanoid_walk/clip", "test_video", "test/mean_return", "note.txt", "<polyline", "rand_seed"):
        assert words in page, words


def test_callbacks_of_the_agents_file(trained, tmp_path, capsys):
    agent = yaml.safe_load((project_root() / "data/agents/ppo_cpu_agent.yaml").read_text())
    stop = {"early_stop": {"patience": 1, "min_change": 100.0}}
    agent["callbacks"] = ["best_model", stop, {"error_plots": {"envs": [0, 1]}}]
    (tmp_path / "agent.yaml").write_text(yaml.safe_dump(agent))
    words = train_words(tmp_path, iters_per_output=1)
    words[words.index("--max_samples") + 1] = 10_000
    assert run(*words, "--agent_config", tmp_path / "agent.yaml", "--out_dir", tmp_path / "run") == 0
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["samples"] == 128
    assert result["stop_reason"].startswith("mean_return has not improved on ")
    assert set(result["episode_media"]) == {"error/humanoid_walk", "error/humanoid_run"}
    for name in ("model.pt", "checkpoint.pt", "best_mean_return.pt"):
        assert (tmp_path / "run" / name).is_file(), name
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["agent"]["callbacks"] == agent["callbacks"]
    # a test of the model has them too, those of training do nothing in it
    words = ["--mode", "test", "--model_file", tmp_path / "run" / "model.pt", "--num_envs", 2, "--test_episodes", 2]
    assert run(*words, "--out_dir", tmp_path / "test") == 0
    media = json.loads((tmp_path / "test" / "result.json").read_text())["episode_media"]
    assert set(media) == {"error/humanoid_walk", "error/humanoid_run"}
    assert not (tmp_path / "test" / "best_mean_return.pt").exists()


def test_a_clip_of_every_motion_and_the_best_of_a_test(trained, tmp_path):
    folder, _ = trained
    words = ["--mode", "test", "--model_file", folder / "model.pt", "--num_envs", 4, "--test_episodes", 8, *SMALL]
    assert run(*words, "--callbacks", "motion_clips", "--out_dir", tmp_path / "motions") == 0
    media = json.loads((tmp_path / "motions" / "result.json").read_text())["episode_media"]
    assert set(media) == {"test_video_humanoid_run", "test_video_humanoid_walk"}
    for name, (item,) in media.items():
        (episode,) = json.loads(Path(item["side_file"]).read_text())["episodes"]
        assert name == f"test_video_{Path(episode['info']['motion']).stem}"
    assert run(*words, "--callbacks", "picked_clips", "pick=best,worst", "--out_dir", tmp_path / "picks") == 0
    media = json.loads((tmp_path / "picks" / "result.json").read_text())["episode_media"]
    sides = {name: json.loads(Path(item["side_file"]).read_text()) for name, (item,) in media.items()}
    returns = {name: side["episodes"][0]["return"] for name, side in sides.items()}
    assert returns["test_video_best"] > returns["test_video_worst"]


def test_a_view_has_callbacks_too(tmp_path):
    Attach.results.clear()
    motion = "data/motions/humanoid/humanoid_walk.npz"
    words = ["--mode", "view", "--env.motion_file", motion, "--env.episode_length", 0.2, "--video", "false"]
    assert run(*words, "--callbacks", "tests.media.attaching:Attach", "--out_dir", tmp_path) == 0
    assert [kind for kind, _ in Attach.results] == ["test"]
    assert names(Attach.results[0][1]) == expected(["humanoid_walk"]) | {("test_picture", "image")}


def test_what_is_attached_to_the_last_episodes_of_a_training_is_there_without_a_test(tmp_path):
    words = train_words(tmp_path, iters_per_output=1)
    words[words.index("--test_episodes")] = "--agent.test_episodes"
    words[words.index("--agent.test_episodes") + 1] = 0
    words[words.index("--env.episode_length") + 1] = 30.0
    assert run(*words, "--callbacks", "tests.media.attaching:Starts", "--out_dir", tmp_path / "run") == 0
    rows = read_rows(tmp_path / "run" / "log.jsonl")
    logged = [item["path"] for row in rows for item in row.get("media", {}).get("start", ())]
    made = {path.relative_to(tmp_path / "run").as_posix() for path in (tmp_path / "run").rglob("media/start/*.html")}
    assert len(logged) == len(set(logged)) >= 4
    assert set(logged) == made
    assert len(json.loads((tmp_path / "run" / "result.json").read_text())["episode_media"]["start"]) >= 1


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["early_stop"], "EarlyStop: expected patience", 2),
        (["early_stop", "patience=1", "metric=speed"], "EarlyStop: metric: expected one of mean_return", 1),
        (["early_stop", "pace=1"], "'early_stop': EarlyStop.__init__ doesn't take what it is given", 2),
        (["patience=1"], "expected a callback before its options as key=value, found 'patience=1'", 2),
        (["early_stp"], "unknown callback 'early_stp'; did you mean 'early_stop'", 2),
        (["tests.media.attaching:COLORS"], "expected a subclass of mimickit.media.callbacks:Callback, found dict", 2),
        (["tests.media.attaching:Broken"], "Broken.on_episode_end: MediaError: media 'mine': expected media", 1),
        (["tests.media.attaching:Raises"], "Raises.on_iteration_end: ValueError: my mistake", 1),
        (["error_plots", "envs=0,7"], "error: ErrorPlots.step_envs: expected environments below 4, found 7", 2),
    ],
)
def test_mistakes_are_named(tmp_path, capsys, words, said, code):
    assert run(*train_words(tmp_path), "--callbacks", *words, "--out_dir", tmp_path / "run") == code
    errors = capsys.readouterr().err
    assert said in errors
    assert ("Traceback" in errors) == (code == 1), "only what a hook does is looked for in its code"
