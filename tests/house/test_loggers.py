"""Loggers: what they write is read back, with the library's own reader where there is one."""

import io
import json
import logging
import math
import shutil
import sys

import numpy as np
import pytest
from PIL import Image as PillowImage

from mimickit.loggers.base import Logger, MissingLibraryError, MultiLogger
from mimickit.loggers.tensorboard_logger import TensorBoardLogger, video_to_gif
from mimickit.loggers.text_logger import TextLogger, keep_older, read_rows
from mimickit.loggers.wandb_logger import WandbLogger
from mimickit.media.types import HTML, File, Histogram, Image, MediaError, Video
from tests.house.wandb_reader import read_history, read_records, read_run


@pytest.fixture(autouse=True)
def _see_warnings(monkeypatch):
    monkeypatch.setattr(logging.getLogger("mimickit"), "propagate", True)


def log_row(logger, step, **values):
    for key, value in values.items():
        logger.log(key, value)
    logger.write(step)


# ---------------------------------------------------------------------- text


def table(folder):
    """Header and rows of log.txt as words; comment lines are left out, as readers of tables do."""
    lines = [line for line in (folder / "log.txt").read_text().splitlines() if not line.startswith("#")]
    assert len({len(line) for line in lines}) <= 1, "all lines are equally long"
    return [line.split() for line in lines]


def test_columns_match_headers_with_late_keys_and_media(tmp_path, make_clip):
    logger = TextLogger(tmp_path)
    clip = make_clip(tmp_path / "videos" / "a.mp4")
    log_row(logger, 1000, mean_return=0.5, a_very_long_name_of_a_measured_quantity=-1.23456789e-05)
    logger.write_media({"test_video": [clip]}, 1000)
    log_row(logger, 2000, mean_return=123456.789, late=3)
    log_row(logger, 3000, late=math.nan, mean_return=math.inf)
    assert table(tmp_path) == [
        ["samples", "mean_return", "a_very_long_name_of_a_measured_quantity", "late"],
        ["1000", "0.5", "-1.23457e-05", "-"],
        ["2000", "123457", "-", "3"],
        ["3000", "inf", "-", "nan"],
    ]
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert lines[2] == "# samples 1000: test_video: videos/a.mp4"
    ends = [lines[0].index(word) + len(word) for word in lines[0].split()]
    assert all(
        line[end - 1] != " " and line[end : end + 2].strip() == "" for line in (lines[1], lines[3]) for end in ends
    )


def test_the_twin_for_programs_holds_the_same(tmp_path, make_clip):
    logger = TextLogger(tmp_path)
    clip = make_clip(tmp_path / "videos" / "a.mp4")
    log_row(logger, 1000, mean_return=0.1 + 0.2)
    logger.write_media({"test_video": [clip]}, 1000)
    log_row(logger, 2000, mean_return=math.nan)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert lines[0] == {"samples": 1000, "mean_return": 0.1 + 0.2}
    assert lines[1]["media"]["test_video"][0] | {"path": None} == clip.to_dict() | {"path": None}
    assert lines[1]["media"]["test_video"][0]["path"] == "videos/a.mp4"
    assert lines[2] == {"samples": 2000, "mean_return": None}


def test_a_key_with_spaces_and_the_step_as_a_key_make_no_extra_columns(tmp_path):
    logger = TextLogger(tmp_path)
    logger.log("wall time", 3.0)
    logger.log("samples", 999)
    logger.log("loss", 1.0, collection="critic")
    logger.write(1000)
    assert table(tmp_path) == [["samples", "wall_time", "critic/loss"], ["1000", "3", "1"]]


def test_media_from_elsewhere_are_kept_in_the_run_folder(tmp_path, make_clip):
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    logger = TextLogger(run)
    for color in ("red", "blue"):
        logger.write_media({"clip": [make_clip(elsewhere / "a.mp4", colors=(color,))]}, 1000)
    logger.close()
    shutil.rmtree(elsewhere)
    assert {path.name for path in (run / "media" / "clip").iterdir()} == {"a.mp4", "a.1.mp4"}
    found = [run / row["media"]["clip"][0]["path"] for row in read_rows(run / "log.jsonl")]
    colors = [gif_frames(video_to_gif(path))[0][0].mean(axis=(0, 1)) for path in found]
    assert np.argmax(colors, axis=1).tolist() == [0, 2], "each line leads to its own clip"


def test_an_older_record_is_kept_or_gone_on_with(tmp_path):
    for step in (1, 2, 3):
        log_row(TextLogger(tmp_path), step, x=step)
    assert [table(tmp_path)[1], read_rows(tmp_path / "log.1.jsonl"), read_rows(tmp_path / "log.2.jsonl")] == [
        ["3", "3"],
        [{"samples": 1, "x": 1.0}],
        [{"samples": 2, "x": 2.0}],
    ]
    assert (tmp_path / "log.2.txt").is_file()
    logger = TextLogger(tmp_path, resume_at=3)
    log_row(logger, 4, x=4, y=5)
    assert table(tmp_path) == [["samples", "x", "y"], ["3", "3", "-"], ["4", "4", "5"]]


def test_a_record_that_is_ahead_of_its_checkpoint_is_cut_and_kept(tmp_path, make_clip):
    clip = make_clip(tmp_path / "videos" / "a.mp4")
    logger = TextLogger(tmp_path)
    for step in (1, 2, 3):
        log_row(logger, step, x=step, **{f"only_{step}": 1})
        logger.write_media({"clip": [clip]}, step)
    ahead = read_rows(tmp_path / "log.jsonl"), table(tmp_path)
    log_row(TextLogger(tmp_path, resume_at=2), 3, x=33)
    assert table(tmp_path) == [["samples", "x", "only_1", "only_2"], ["1", "1", "1", "-"], ["2", "2", "-", "1"],
                               ["3", "33", "-", "-"]]  # fmt: skip
    rows = read_rows(tmp_path / "log.jsonl")
    assert [(row["samples"], "media" in row) for row in rows] == [
        (1, False), (1, True), (2, False), (2, True), (3, False),
    ]  # fmt: skip
    for name in ("log.txt", "log.jsonl"):
        (tmp_path / name.replace(".", ".1.")).rename(tmp_path / name)
    assert (read_rows(tmp_path / "log.jsonl"), table(tmp_path)) == ahead


def test_a_line_that_a_killed_process_left_unfinished_is_passed_over(tmp_path):
    log_row(TextLogger(tmp_path), 1, x=1)
    with (tmp_path / "log.jsonl").open("a") as file:
        file.write('{"samples": 2, "x')
    log_row(TextLogger(tmp_path, resume_at=3), 3, x=3)
    assert [row["samples"] for row in read_rows(tmp_path / "log.jsonl")] == [1, 3]


def test_keep_older_never_takes_a_name_that_is_in_use(tmp_path):
    for number in range(12):
        keep_older(tmp_path / "a.json")
        (tmp_path / "a.json").write_text(str(number))
    assert (tmp_path / "a.11.json").read_text() == "10"
    assert len(list(tmp_path.iterdir())) == 12


# ---------------------------------------------------------------------- all of them


class OnlyNumbers(Logger):
    """A logger of one's own that shows no media."""

    NAME = "own"

    def __init__(self):
        super().__init__()
        self.rows, self.media = [], []

    def _write_row(self, row, step):
        self.rows.append((step, dict(row)))

    def _write_media(self, key, items, step):
        self.media.append((step, key, [str(item.path) for item in items]))


def test_a_logger_that_shows_no_videos_takes_paths_and_says_so_once(tmp_path, make_clip, caplog):
    logger, clip = OnlyNumbers(), make_clip(tmp_path / "a.mp4")
    for step in (1, 2):
        logger.write_media({"clip": [clip]}, step)
    assert logger.media == [(1, "clip", [str(clip.path)]), (2, "clip", [str(clip.path)])]
    assert caplog.text.count("own logger: shows no video; its path is logged instead") == 1


def test_a_failing_logger_is_reported_once_and_stops_nothing(tmp_path, caplog):
    class Failing(OnlyNumbers):
        NAME = "failing"

        def _write_row(self, row, step):
            raise OSError(28, "No space left on device")

    good = OnlyNumbers()
    logger = MultiLogger([Failing(), good])
    for step in (1, 2):
        log_row(logger, step, x=step)
    logger.write_media({"clip": [Video(path=tmp_path / "gone.mp4")]}, 2)
    logger.close()
    assert good.rows == [(1, {"x": 1.0}), (2, {"x": 2.0})]
    assert caplog.text.count("failing logger: could not write numbers: OSError: [Errno 28]") == 1
    assert "own logger: could not write media 'clip': MediaError: media 'clip': expected a video file" in caplog.text


def test_media_that_are_not_there_are_refused_by_key(tmp_path):
    with pytest.raises(MediaError, match="media 'clip': expected a video file, found nothing"):
        TextLogger(tmp_path).write_media({"clip": [Video(path=tmp_path / "gone.mp4")]}, 1)


def test_what_is_logged_without_a_step_stands_at_the_last(tmp_path, make_clip):
    clip, own = make_clip(tmp_path / "a.mp4"), OnlyNumbers()
    logger = MultiLogger([own])
    logger.write_media({"clip": [clip]})
    log_row(logger, 1000, x=1)
    logger.write_media({"clip": [clip]})
    log_row(logger, None, x=2)
    assert [step for step, _, _ in own.media] == [0, 1000]
    assert own.rows == [(1000, {"x": 1.0}), (1000, {"x": 2.0})]


@pytest.mark.parametrize("make", [TextLogger, TensorBoardLogger, WandbLogger])
def test_the_first_video_may_come_late(tmp_path, make_clip, make, caplog):
    clip, options = make_clip(tmp_path / "a.mp4"), {"mode": "offline"} if make is WandbLogger else {}
    logger = make(tmp_path / "run", **options)
    for step in (1, 2, 3, 4):
        log_row(logger, step, x=step)
    logger.write_media({"clip": [clip]}, 5)
    log_row(logger, 5, x=5)
    logger.close()
    assert [record.message for record in caplog.records if record.name.startswith("mimickit")] == []
    if make is TextLogger:
        assert "# samples 5: clip: media/clip/a.mp4" in (tmp_path / "run" / "log.txt").read_text()
    elif make is TensorBoardLogger:
        assert [event.step for event in read_events(tmp_path / "run").Images("clip")] == [5]
    else:

        assert [row["samples"] for row in read_history(tmp_path / "run") if "clip/path" in row] == [5]


@pytest.mark.parametrize(("name", "make"), [("wandb", WandbLogger), ("tensorboard.compat.proto", TensorBoardLogger)])
def test_a_missing_library_is_named_with_its_install_line(tmp_path, monkeypatch, name, make):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingLibraryError, match=f"pip install {name.split('.')[0]}"):
        make(tmp_path)


# ---------------------------------------------------------------------- TensorBoard


def read_events(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"images": 0, "scalars": 0, "tensors": 0, "histograms": 0})
    events.Reload()
    return events


def gif_frames(data):
    picture = PillowImage.open(io.BytesIO(data))
    frames, seconds = [], 0.0
    for index in range(picture.n_frames):
        picture.seek(index)
        seconds += picture.info["duration"] / 1000.0
        frames.append(np.asarray(picture.convert("RGB")))
    return frames, seconds


@pytest.mark.parametrize(("fps", "frames"), [(30, 60), (25, 50), (10, 20), (60, 60)])
def test_a_gif_has_the_clips_frames_speed_and_colours(tmp_path, make_clip, fps, frames):
    clip = make_clip(tmp_path / "a.mp4", seconds=2.0, fps=fps, size="640x360")
    found, seconds = gif_frames(video_to_gif(clip.path, clip.fps))
    assert len(found) == frames
    assert seconds == pytest.approx(2.0, abs=0.03)
    assert found[0].shape == (240, 427, 3)
    for frame, color in ((found[0], (255, 0, 0)), (found[-1], (0, 0, 255))):
        assert np.abs(frame.mean(axis=(0, 1)) - color).max() < 8


def test_tensorboard_reads_back_numbers_and_playable_clips(tmp_path, make_clip):
    logger = TensorBoardLogger(tmp_path / "run")
    clips = [make_clip(tmp_path / f"{color}.mp4", colors=(color,)) for color in ("red", "blue")]
    picture, page = tmp_path / "plot.png", tmp_path / "page.html"
    PillowImage.new("RGB", (40, 30), "green").save(picture)
    page.write_text("<p>")
    log_row(logger, 1000, mean_return=0.5)
    logger.write_media({"clip": clips, "plot": [Image(path=picture)], "page": [HTML(path=page)]}, 1500)
    logger.log("loss", 2.0, collection="critic")
    logger.write(2000)
    logger.close()
    logger.close()

    events = read_events(tmp_path / "run")
    assert [(e.step, e.value) for e in events.Scalars("mean_return")] == [(1000, 0.5)]
    assert [(e.step, e.value) for e in events.Scalars("critic/loss")] == [(2000, 2.0)]
    assert set(events.Tags()["images"]) == {"clip", "clip/1", "plot"}
    for tag, color in (("clip", (255, 0, 0)), ("clip/1", (0, 0, 255))):
        (event,) = events.Images(tag)
        frames, seconds = gif_frames(event.encoded_image_string)
        assert (event.step, event.width, event.height, len(frames)) == (1500, 320, 180, 30)
        assert seconds == pytest.approx(1.0, abs=0.02)
        assert np.abs(frames[15].mean(axis=(0, 1)) - color).max() < 8
    (text,) = events.Tensors("page/text_summary")
    assert text.tensor_proto.string_val[0].decode() == str(page)


def test_tensorboard_shows_nothing_of_a_killed_run_past_its_checkpoint(tmp_path):
    killed = TensorBoardLogger(tmp_path)
    for step in (1, 2, 3, 4):
        log_row(killed, step, x=step)
    killed.close()
    (file,) = tmp_path.iterdir()
    file.rename(tmp_path / "events.out.tfevents.1")  # the older by its name, also where both are of one second
    resumed = TensorBoardLogger(tmp_path, resume_at=2)
    log_row(resumed, 3, x=33)
    resumed.close()
    assert [(e.step, e.value) for e in read_events(tmp_path).Scalars("x")] == [(1, 1.0), (2, 2.0), (3, 33.0)]


def test_a_very_long_clip_is_logged_to_tensorboard_by_its_path(tmp_path, make_clip, caplog):
    logger = TensorBoardLogger(tmp_path / "run")
    clip = make_clip(tmp_path / "a.mp4", seconds=62.0, fps=5, size="32x32")
    logger.write_media({"clip": [clip]}, 1)
    logger.close()
    (text,) = read_events(tmp_path / "run").Tensors("clip/text_summary")
    assert text.tensor_proto.string_val[0].decode() == str(clip.path)
    assert "is longer than 60 s; its path is logged" in caplog.text


def test_a_clip_that_is_none_is_reported_with_ffmpegs_words(tmp_path):
    (tmp_path / "a.mp4").write_bytes(b"no clip")
    with pytest.raises(RuntimeError, match="ffmpeg: "):
        video_to_gif(tmp_path / "a.mp4")


# ---------------------------------------------------------------------- W&B


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory, make_clip):
    """Two seeds of a group, offline, with no account and no network; the clips' source is gone afterwards."""
    root = tmp_path_factory.mktemp("group")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("WANDB_API_KEY", raising=False)
        for seed in (0, 1):
            source, run = root / "temporary", root / f"walk_seed{seed}"
            clip = make_clip(source / "a.mp4", colors=("red",) if seed else ("blue",))
            logger = WandbLogger(run, config={"rand_seed": seed}, group="seeds", tags=["cpu"], mode="offline")
            _log_in_every_order(logger, clip)
            logger.close()
            logger.close()
            shutil.rmtree(source)
    return root / "walk_seed0", root / "walk_seed1"


def _log_in_every_order(logger, clip):
    logger.write_media({"test_video": [clip]}, 500)  # the first video before any number
    log_row(logger, 1000, mean_return=1.0)
    logger.write_media({"test_video": [clip]}, 1000)  # after the numbers of its step
    logger.write_media({"test_video": [clip, clip]}, 1000)  # twice at one step
    log_row(logger, 2000, mean_return=2.0)
    logger.write_media({"replay": [File(path=clip.path)]}, 1500)  # at a lower step
    log_row(logger, 1500, mean_return=1.5)


def test_wandb_keeps_everything_whatever_the_order(two_runs):

    rows = read_history(two_runs[0])
    assert [row["samples"] for row in rows] == [500, 1000, 1000, 1000, 2000, 1500, 1500]
    assert [row["mean_return"] for row in rows if "mean_return" in row] == [1.0, 2.0, 1.5]
    assert [row["samples"] for row in rows if "test_video/_type" in row] == [500, 1000, 1000]
    assert [row["_step"] for row in rows] == list(range(7))
    metrics = [record.metric for record in read_records(two_runs[0]) if record.HasField("metric")]
    assert ("*", "samples") in [(metric.glob_name, metric.step_metric) for metric in metrics]


def test_wandb_media_lie_in_the_run_folder_after_their_source_has_gone(two_runs):

    for run in two_runs:
        paths = [row["test_video/path"] for row in read_history(run) if "test_video/path" in row]
        assert paths
        for path in paths:
            (file,) = run.glob(f"wandb/offline-run-*/files/{path}")
            frames, seconds = gif_frames(video_to_gif(file, 30.0))
            assert (len(frames), round(seconds, 1)) == (30, 1.0)


def test_two_seeds_stand_side_by_side_in_one_group(two_runs):

    runs = [read_run(folder) for folder in two_runs]
    assert [run.display_name for run in runs] == ["walk_seed0", "walk_seed1"]
    assert {(run.run_group, run.project, tuple(run.tags)) for run in runs} == {("seeds", "mimickit", ("cpu",))}
    assert runs[0].run_id != runs[1].run_id
    config = [{u.key: json.loads(u.value_json) for u in run.config.update} for run in runs]
    assert [values["rand_seed"] for values in config] == [0, 1]
    keys = [{key for row in read_history(folder) for key in row} for folder in two_runs]
    assert keys[0] == keys[1]


def test_wandb_keeps_mixed_media_under_one_name_and_calls_without_a_step(tmp_path, make_clip):

    clip, note, counts = make_clip(tmp_path / "a.mp4"), tmp_path / "note.txt", tmp_path / "counts.json"
    note.write_text("fell")
    counts.write_text('{"counts": [1, 2], "edges": [0, 1, 2]}')
    logger = WandbLogger(tmp_path / "run", mode="offline")
    mixed = [clip, File(path=note), clip, Histogram(path=counts), File(path=note)]
    logger.write_media({"mixed": mixed}, 100)
    log_row(logger, 100, x=1.0)
    log_row(logger, 100, x=2.0)  # twice at one step
    logger.write_media({"clip": [clip]})
    log_row(logger, None, x=3.0)
    logger.close()
    rows = read_history(tmp_path / "run")
    assert [row["samples"] for row in rows] == [100] * 8
    assert [row["x"] for row in rows if "x" in row] == [1.0, 2.0, 3.0]
    assert rows[0]["mixed/count"] == 2
    (files,) = (tmp_path / "run").glob("wandb/offline-run-*/files")
    kept = [files / row["mixed"] for row in rows if "mixed" in row]
    assert [path.read_text() for path in kept] == ["fell", "fell"]
    assert [row["mixed/values"] for row in rows if "mixed/values" in row] == [[1.0, 2.0]]
    assert (files / rows[6]["clip/path"]).is_file()


def test_a_disabled_run_of_wandb_takes_everything_and_keeps_nothing(tmp_path, make_clip):
    clip = make_clip(tmp_path / "a.mp4")
    logger = WandbLogger(tmp_path / "run", mode="disabled", keeps_model=True)
    log_row(logger, 1, x=1.0)
    logger.write_media({"clip": [clip], "file": [File(path=clip.path)]}, 1)
    logger.write_model(clip.path, 1)
    logger.close()
    assert not list((tmp_path / "run").rglob("*.wandb"))


def test_tensorboard_reads_back_histograms(tmp_path):
    counts = tmp_path / "counts.json"
    counts.write_text('{"counts": [1, 3], "edges": [0, 2, 4]}')
    logger = TensorBoardLogger(tmp_path / "run")
    logger.write_media({"counts": [Histogram(path=counts)]}, 5)
    logger.close()
    (event,) = read_events(tmp_path / "run").Histograms("counts")
    value = event.histogram_value
    assert (event.step, value.num, value.sum, list(value.bucket)) == (5, 4.0, 10.0, [1.0, 3.0])


def test_a_histogram_that_is_none_is_refused(tmp_path):
    counts = tmp_path / "counts.json"
    counts.write_text('{"counts": [1, 3], "edges": [0, 2]}')
    with pytest.raises(MediaError, match="media 'x': expected counts and one edge more"):
        TextLogger(tmp_path / "run").write_media({"x": [Histogram(path=counts)]}, 1)


def test_what_is_pending_is_written_at_the_end_and_nothing_after_it(tmp_path):
    logger = MultiLogger([TextLogger(tmp_path), WandbLogger(tmp_path, mode="offline")])
    logger.log("early", 1.0)
    logger.write(8)
    logger.log("pending", 2.0)
    logger.close()
    logger.close()
    assert [row.get("pending") for row in read_rows(tmp_path / "log.jsonl")] == [None, 2.0]
    assert [row.get("pending") for row in read_history(tmp_path)] == [None, 2.0]
    for write in (lambda: logger.log("late", 3.0), lambda: logger.write(9), lambda: logger.write_media({})):
        with pytest.raises(RuntimeError, match="closed"):
            write()


@pytest.mark.parametrize("failed", [False, True])
def test_wandb_hears_how_a_run_ended(tmp_path, failed):
    logger = MultiLogger([WandbLogger(tmp_path, mode="offline")])
    logger.run_failed = failed
    logger.close()
    (code,) = [record.exit.exit_code for record in read_records(tmp_path) if record.HasField("exit")]
    assert code == int(failed)
