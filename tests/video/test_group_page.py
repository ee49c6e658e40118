"""The page of runs: read from folders in any state, and true to what is in them."""

import json
import re

import pytest

from mimickit.util.ticks import ticks
from mimickit.video.errors import VideoError
from mimickit.video.pages.curves import Curve, chart, short
from mimickit.video.pages.group_page import write_group_page
from mimickit.video.pages.run_record import find_runs, load_run


def add_run(folder, *, values=(1.0, 2.0), config="rand_seed: 0\n", media=(), result=None, tail=""):
    folder.mkdir(parents=True)
    rows = [{"samples": 100 * number, "test/mean_return": value} for number, value in enumerate(values, start=1)]
    rows += [{"samples": samples, "media": {key: [item]}} for samples, key, item in media]
    (folder / "log.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows) + tail)
    (folder / "config.yaml").write_text(config)
    if result is not None:
        (folder / "result.json").write_text(json.dumps(result))
    for _, _, item in media:
        (folder / item["path"]).write_bytes(b"x")
    return folder


def data_of(page):
    return json.loads(re.search(r"const shown = (.*?);  //", page.read_text())[1].replace("\\u003c", "<"))


def test_a_run_that_is_being_written_is_read_and_left_alone(tmp_path):
    run = add_run(tmp_path / "a", values=(1.0, None, 3.0), tail='{"samples": 400, "te')
    before = (run / "log.jsonl").read_bytes()
    record = load_run(run)
    assert record.curves == {"test/mean_return": ([100.0, 300.0], [1.0, 3.0])}
    assert (record.name, record.figures, record.exhibits) == ("a", {}, ())
    assert (run / "log.jsonl").read_bytes() == before


def test_films_of_every_moment_files_and_figures(tmp_path):
    clips = [(step, "test_video", {"type": "video", "path": f"{step}.mp4"}) for step in (100, 200)]
    note = (200, "note", {"type": "file", "path": "note.txt"})
    first = add_run(tmp_path / "group" / "a", media=[*clips, note], result={"mean_return": 2.0, "seed": 0})
    gone = add_run(tmp_path / "elsewhere" / "b", media=clips[:1], result={"mean_return": 4.0}, config="rand_seed: 1\n")
    page = write_group_page([load_run(first), load_run(gone, "other")], tmp_path / "group" / "index.html", "both")
    shown = data_of(page)
    assert [[item["samples"] for item in run["test_video"]] for run in shown] == [[100, 200], [100]]
    assert 'src="a/200.mp4"' in shown[0]["test_video"][-1]["html"]
    assert 'src="../elsewhere/b/100.mp4"' in shown[1]["test_video"][0]["html"]
    text = page.read_text()
    settings = "rand_seed</th><td>0</td><td>1</td>"
    for words in ('href="a/note.txt"', "3 ± 1.414", settings, "<title>both: 2 runs</title>"):
        assert words in text, words
    assert "<th>seed</th>" not in text


def test_a_clip_that_was_deleted_is_not_shown(tmp_path):
    run = add_run(tmp_path / "a", media=[(100, "test_video", {"type": "video", "path": "a.mp4"})])
    (run / "a.mp4").unlink()
    assert load_run(run).exhibits == ()


def test_hostile_names_are_text(tmp_path):
    media = [(100, "<b>x</script>", {"type": "image", "path": "a.png", "caption": "</script><script>"})]
    run = add_run(tmp_path / "<i>run", media=media, config="rand_seed: '<u>'\n", result={"<s>": 1.0})
    text = write_group_page([load_run(run)], tmp_path / "page.html", "<h1>").read_text()
    assert text.count("<script>") == text.count("</script>") == 1
    for words in ("<b>x", "<i>run", "<u>", "<s>"):
        assert words not in text, words


def test_groups_are_found_and_other_folders_refused(tmp_path):
    runs = [add_run(tmp_path / "group" / name) for name in ("b", "a")]
    (tmp_path / "group" / "no run").mkdir()
    assert find_runs(tmp_path / "group") == sorted(runs)
    assert find_runs(runs[0]) == [runs[0]]
    with pytest.raises(VideoError, match="expected the folder of a run or of a group of runs"):
        find_runs(tmp_path / "group" / "no run")
    (runs[0] / "config.yaml").write_text("a: b: c")
    with pytest.raises(VideoError, match=r"b: can't be read: .*config\.yaml:1"):
        load_run(runs[0])


def test_long_curves_are_thinned_and_short_ones_seen():
    many = chart([Curve("a", "red", range(100_000), range(100_000))], "a")
    (points,) = re.findall(r'points="([^"]*)"', many)
    places = [tuple(map(float, point.split(","))) for point in points.split()]
    assert len(places) == 240
    assert places == sorted(places)
    assert places[0][1] > places[-1][1] + 150
    assert "<circle" in chart([Curve("a", "red", [5.0], [0.0])], "a")
    assert chart([], "a") == ""


@pytest.mark.parametrize(
    ("value", "text"), [(1_500_000, "1.5M"), (20_000, "20k"), (4096, "4096"), (0.85321, "0.8532"), (0, "0")]
)
def test_numbers_are_short(value, text):
    assert short(value) == text


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.3, 7.1), (0.0651, 0.0659), (0, 1e7), (5, 5)])
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high)
    assert 1 <= len(found) <= 6
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found)
