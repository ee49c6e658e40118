"""The index of a run: what it says of each clip, and that it plays and sorts in a browser."""

import json
import re
import shutil
import subprocess

import cv2
import numpy as np
import pytest

from mimickit.video.clip import Clip, Episode
from mimickit.video.errors import VideoError
from mimickit.video.files.frame_writer import find_ffmpeg
from mimickit.video.pages.run_index import write_index
from tests.video.browser import Browser, require_browser


def add_clip(folder, name, *, content=b"film", returns=(), **facts):
    """A clip of two seconds with its side file."""
    path = folder / name
    if content is not None:
        path.write_bytes(content)
    episodes = tuple(
        Episode(30 * i, 30, 29, value, "fail" if value else "unfinished") for i, value in enumerate(returns)
    )
    given = {
        "fps": 30.0,
        "num_frames": 60,
        "width": 160,
        "height": 90,
        "engine": "mujoco",
        "env_id": 0,
        "camera": "track",
    }
    Clip(path=path, side_file=path.with_suffix(".json"), episodes=episodes, **{**given, **facts}).write_side_file()
    return path


@pytest.fixture
def videos(tmp_path):
    folder = tmp_path / "a <run>" / "videos"
    folder.mkdir(parents=True)
    return folder


def articles(page):
    """The HTML of each clip, by its name, in the order of the page."""
    found = re.findall(r'<article data-name="([^"]*)".*?</article>', page.read_text(), re.DOTALL)
    parts = re.findall(r"<article .*?</article>", page.read_text(), re.DOTALL)
    return dict(zip(found, parts, strict=True))


def test_every_clip_is_there_with_its_figures_by_samples(videos):
    add_clip(videos, "late.mp4", samples=2_000_000, returns=(3.0, 5.0), camera="track,side", seed=7)
    add_clip(videos, "early.webm", samples=1000, returns=(1.5, None), env_ids=(2, 4))
    page = write_index(videos.parent)
    assert page == videos / "index.html"
    assert write_index(videos) == page  # the run's folder and the clips' mean the same
    found = articles(page)
    assert list(found) == ["early", "late"]
    for words in ("2\u202f000\u202f000", "4.00", "2.0 s", "track, side", "<dt>seed</dt><dd>7", "fail 3.0", "fail 5.0"):
        assert words in found["late"], words
    for words in ('src="early.webm"', "2, 4", "1.50", "unfinished"):
        assert words in found["early"], words
    assert ["best</b>" in text for text in found.values()] == [False, True]


def test_formats_posters_and_what_lies_beside(videos):
    add_clip(videos, "a.mp4")
    for name in ("a.png", "a.trace", "a.html"):
        (videos / name).write_bytes(b"x")
    add_clip(videos, "b.gif")
    (videos / "c").mkdir()
    for number in (2, 1):
        (videos / "c" / f"{number:06d}.png").write_bytes(b"x")
    add_clip(videos, "c", content=None)
    add_clip(videos, "gone.mp4").unlink()
    found = articles(write_index(videos))
    for words in ('poster="a.png"', 'href="a.trace"', 'href="a.html"', '<video class="media" src="a.mp4"'):
        assert words in found["a"], words
    assert '<img class="media" src="b.gif"' in found["b"]
    assert "trace" not in found["b"]
    assert 'href="c/"' in found["c"]
    assert 'src="c/000001.png"' in found["c"]
    assert "gone.mp4 is not here any more" in found["gone"]


def test_hostile_names_are_text_and_addresses_are_relative(videos):
    add_clip(videos, "a <b>&'\"#?.mp4", camera="<script>", model_file="</html>")
    text = write_index(videos).read_text()
    assert "<b>&" not in text
    assert text.count("<script>") == 1
    assert 'src="a%20%3Cb%3E%26%27%22%23%3F.mp4"' in text
    assert "<title>a &lt;run&gt;: 1 clip</title>" in text
    assert str(videos) not in text


def test_broken_side_files_are_named_and_passed_over(videos):
    add_clip(videos, "good.mp4")
    good = json.loads((videos / "good.json").read_text())
    broken = {
        "cut.json": b"{",
        "word.json": b'"word"',
        "list.json": b"[1]",
        "bytes.json": b"\xff\xfe\x00",
        "fps.json": json.dumps({**good, "fps": 0}).encode(),
        "samples.json": json.dumps({**good, "samples": "many"}).encode(),
        "other.json": json.dumps({**good, "unknown": 1}).encode(),
    }
    for name, content in broken.items():
        (videos / name).write_bytes(content)
    (videos / "folder.json").mkdir()
    page = write_index(videos)
    assert list(articles(page)) == ["good"]
    for name in (*broken, "folder.json"):
        assert f"{name} is passed over" in page.read_text(), name


def test_an_empty_run_and_one_that_can_not_be_written(videos):
    assert "0 clips" in write_index(videos).read_text()
    (videos / "index.html").unlink()
    (videos / "index.html").mkdir()
    with pytest.raises(VideoError, match=r"index\.html: can't be written"):
        write_index(videos)
    assert [path.name for path in videos.iterdir()] == ["index.html"]
    with pytest.raises(VideoError, match="nowhere"):
        write_index(videos / "nowhere")


def test_clips_play_and_sort_in_a_browser_also_where_the_folder_was_moved(videos, tmp_path):
    require_browser()
    command = [
        find_ffmpeg(),
        "-loglevel",
        "error",
        "-f",
        "lavfi",
        "-i",
        "testsrc=s=160x90:r=30:d=2",
        "-pix_fmt",
        "yuv420p",
    ]
    subprocess.run([*command, str(tmp_path / "film.mp4")], check=True)
    film = (tmp_path / "film.mp4").read_bytes()
    for name, samples, returns in (("a", 1, (5.0,)), ("b", 2, (9.0,)), ("c", 3, (7.0,)), ("d", 4, ())):
        add_clip(videos, f"{name}.mp4", content=film, samples=samples, returns=returns)
    cv2.imwrite(str(videos / "a.png"), np.zeros((90, 160, 3), np.uint8))
    write_index(videos)
    moved = tmp_path / "elsewhere"
    shutil.move(videos, moved)
    browser = Browser(tmp_path / "browser")
    browser.go_offline()
    browser.open(moved / "index.html")
    order = "[...document.querySelectorAll('article')].map((e) => e.dataset.name).join('')"
    assert browser.evaluate(order) == "abcd"
    for key, expected in (("return", "bcad"), ("return", "dacb"), ("name", "abcd"), ("name", "dcba")):
        browser.evaluate(f"document.querySelector('[data-key={key}]').click()")
        assert browser.evaluate(order) == expected
    browser.evaluate("document.querySelector('[data-name=c] video').play()")
    browser.wait_for("document.querySelector('[data-name=c] video').currentTime > 0.05")
    assert all(address.startswith((moved.as_uri(), "data:")) for address in browser.requests)
    assert browser.complaints == []
    browser.close()
