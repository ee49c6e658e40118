"""What can be attached: it becomes a file of the run folder, or is refused by its key."""

from pathlib import Path
from unittest import mock

import cv2
import numpy as np
import pytest
import torch
import wandb

from mimickit.media import file, histogram, html, image, video
from mimickit.media.episode import EpisodeMedia
from mimickit.media.store import MediaStore
from mimickit.media.types import HTML, File, Frames, Histogram, Image, MediaError, Video
from tests.video.films import read_frames

RED = np.full((6, 33, 41, 3), (230, 20, 20), dtype=np.uint8)


@pytest.fixture
def store(tmp_path):
    return MediaStore(tmp_path / "run", fps=10.0)


@pytest.mark.parametrize(
    "value",
    [
        RED,
        RED.transpose(0, 3, 1, 2),
        torch.from_numpy(RED),
        list(RED),
        video(RED[None], fps=10),
        np.concatenate([RED, RED[..., :1]], axis=-1),
    ],
    ids=["array", "channels first", "tensor", "list of pictures", "batch of one", "alpha"],
)
def test_frames_become_a_clip_in_their_colours(store, tmp_path, value):
    (clip,) = store.keep("walk/clip", value)
    assert isinstance(clip, Video)
    assert clip.path.parent == tmp_path / "run" / "media" / "walk" / "clip"
    assert (clip.fps, clip.num_frames, clip.width, clip.height) == (10.0, 6, 42, 34)  # even, as players need it
    frames = read_frames(clip.path)
    assert len(frames) == 6
    assert np.abs(frames[3].mean(axis=(0, 1)) - (230, 20, 20)).max() < 12
    assert not list(clip.path.parent.glob("*.part"))


@pytest.mark.parametrize("value", [RED[0], RED[0].transpose(2, 0, 1), torch.from_numpy(RED[0]), image(RED[0])])
def test_a_picture_is_kept_exactly(store, value):
    (picture,) = store.keep("still", value)
    assert isinstance(picture, Image)
    np.testing.assert_array_equal(cv2.imread(str(picture.path))[..., ::-1], RED[0])


def test_gray_pictures_and_films(store):
    gray = np.arange(48, dtype=np.uint8).reshape(1, 6, 8).repeat(4, axis=0)
    (clip,) = store.keep("film", video(gray, fps=5))
    (picture,) = store.keep("still", gray[0])
    assert len(read_frames(clip.path)) == 4
    assert cv2.imread(str(picture.path)).shape == (6, 8, 3)


def test_histograms_pages_and_files(store, tmp_path):
    (counts,) = store.keep("counts", histogram([0.0, 1.0, 1.0, np.nan], bins=2))
    assert isinstance(counts, Histogram)
    assert counts.read() == ([1.0, 2.0], [0.0, 0.5, 1.0])
    (same,) = store.keep("counts", histogram(np.histogram([0.0, 1.0, 1.0], bins=2)))
    assert same.read() == counts.read()
    assert same.path != counts.path
    (page,) = store.keep("page", html("<p>grün"))
    assert isinstance(page, HTML)
    assert page.path.read_text(encoding="utf-8") == "<p>grün"
    source = tmp_path / "note.txt"
    source.write_text("1")
    (first,), (second,) = store.keep("note", source), store.keep("note", file(source))
    assert isinstance(first, File)
    assert [first.path.name, second.path.name] == ["note.txt", "note.1.txt"]
    source.unlink()
    assert first.path.read_text() == "1"


def test_numbers_of_every_kind_are_counted(store):
    for values in (torch.ones(3, dtype=torch.bfloat16), [torch.tensor(1.0)] * 3, (1, 1, 1), np.ones((3, 1), bool)):
        (counts,) = store.keep("counts", histogram(values, bins=np.int64(1)))
        assert counts.read()[0] == [3.0]


def test_wandbs_values_are_taken_while_their_files_are_there(store, tmp_path):
    cv2.imwrite(str(tmp_path / "a.png"), RED[0])
    (clip,) = store.keep("clip", RED)
    values = [
        wandb.Video(str(clip.path), caption="mine", format="mp4"),
        wandb.Image(RED[0]),
        wandb.Html("<p>"),
        wandb.Histogram([1.0, 2.0]),
    ]
    kept = [store.keep("wandb", value)[0] for value in values]
    assert [type(item) for item in kept] == [Video, Image, HTML, Histogram]
    assert all(item.path.resolve().is_relative_to(tmp_path / "run") for item in kept)
    assert (kept[0].caption, kept[0].num_frames, kept[0].fps) == ("mine", 6, 10.0)


def test_several_under_one_name(store):
    kept = store.keep("many", [video(RED), image(RED[0]), RED[1]])
    assert [type(item) for item in kept] == [Video, Image, Image]


def test_a_file_of_the_run_folder_is_kept_as_it_was(store, tmp_path):
    folder = tmp_path / "run"
    (folder / "videos").mkdir(parents=True)
    for path in (folder / "plot.png", folder / "videos" / "plot.png"):
        kept = []
        for level in (50, 100, 150):
            cv2.imwrite(str(path), np.full((4, 4, 3), level, np.uint8))
            kept += store.keep("plot", path)
        path.unlink()
        assert [int(cv2.imread(str(item.path))[0, 0, 0]) for item in kept] == [50, 100, 150]
        assert {item.path.parent for item in kept} == {folder / "media" / "plot"}


def test_pictures_of_a_folder_are_kept_as_they_were(store, tmp_path):
    folder = tmp_path / "run" / "frames"
    folder.mkdir(parents=True)
    cv2.imwrite(str(folder / "0.png"), RED[0])
    (kept,) = store.keep("frames", Frames(path=folder))
    (folder / "0.png").unlink()
    assert [path.name for path in kept.path.iterdir()] == ["0.png"]


def test_what_was_made_here_and_finished_clips_are_not_copied(store, tmp_path):
    (made,) = store.keep("a", RED)
    assert store.keep("b", made) == [made]
    assert store.keep("c", str(made.path))[0].path == made.path
    clip = tmp_path / "run" / "videos" / "test_video.mp4"
    clip.parent.mkdir()
    clip.write_bytes(made.path.read_bytes())
    clip.with_suffix(".json").write_text("{}")
    finished = Video(path=clip, side_file=clip.with_suffix(".json"))
    assert store.keep("d", finished) == [finished]
    clip.with_suffix(".json").unlink()
    assert store.keep("e", Video(path=clip))[0].path.parent == tmp_path / "run" / "media" / "e"


def test_an_attachment_never_looks_through_its_folder(store, tmp_path):
    """The cost of one does not grow with those before it, and what was there is not written over."""
    source = tmp_path / "note.txt"
    source.write_text("x")
    folder = tmp_path / "run" / "media" / "note"
    folder.mkdir(parents=True)
    (folder / "note.2.txt").write_text("older")
    asked = []
    real = Path.exists
    with mock.patch.object(Path, "exists", autospec=True, side_effect=lambda path: asked.append(path) or real(path)), \
            mock.patch.object(Path, "glob", side_effect=AssertionError("the folder is searched")):  # fmt: skip
        names = [store.keep("note", source)[0].path.name for _ in range(50)]
        assert len(asked) < 4 * 50
        pictures = {store.keep("still", image(RED[0]))[0].path for _ in range(5)}
    assert names[:4] == ["note.txt", "note.1.txt", "note.3.txt", "note.4.txt"]
    assert (len(set(names)), len(pictures)) == (50, 5)
    assert (folder / "note.2.txt").read_text() == "older"


def test_a_value_that_is_set_anew_leaves_no_file(store, tmp_path):
    media = EpisodeMedia(store.keep, store.discard)
    media["x"] = [RED, RED[0]]
    media["kept"] = media["x"][1]
    media["x"] = [*media["x"], html("<p>")]  # goes on with what was there
    assert all(item.path.is_file() for item in media["x"])
    media["x"] = html("<p>")
    files = {path for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert files == {item.path for name in ("x", "kept") for item in media[name]}
    with pytest.raises(MediaError):
        media["x"] = [RED[0], object()]
    assert {path for path in (tmp_path / "run").rglob("*") if path.is_file()} == files


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "expected media, a path, pictures or a W&B value, found object"),
        (3.5, "found float"),
        (np.zeros((2, 2, 2, 2, 2), np.uint8), r"expected frames .*found shape \(2, 2, 2, 2, 2\)"),
        (RED.astype(np.float32), "expected frames .*uint8, found float32"),
        (RED[:0], r"found shape \(0, 33, 41, 3\)"),
        (np.zeros((5, 6, 7), np.uint8), r"expected a picture .*found shape \(5, 6, 7\)"),
        (video(RED, fps=0), "fps: expected a number from 0.1 to 1000, found 0"),
        (video(RED, fps="30"), "fps: expected a number from 0.1 to 1000, found '30'"),
        (video(RED, fps=1e6), "fps: expected a number from 0.1 to 1000, found 1000000.0"),
        (video("a.mp4", fps=True), "fps: expected a number from 0.1 to 1000, found True"),
        (video(None), "expected frames .*found NoneType"),
        (video(RED, caption=3), "caption: expected text, found 3"),
        (image([RED[0], "abc"]), "expected a picture .*found list"),
        (image(wandb.Html("<p>")), "expected an image file, found a wandb.Html"),
        (html("\ud800"), r"expected the text of a page, or its path, found '\\ud800'"),
        (html(5), "expected the text of a page, or its path, found 5"),
        (html(" "), "expected the text of a page, or its path, found ' '"),
        (html(Path("no.html")), "expected an HTML file, found nothing at no.html"),
        (file(None), "expected the path of a file, found None"),
        (file(5), "expected the path of a file, found 5"),
        (file("nowhere.txt"), "expected a file, found nothing at nowhere.txt"),
        (histogram("abc"), "expected numbers to count, found 'abc'"),
        (histogram(None), "expected numbers to count, found None"),
        (histogram([1.0, None]), "expected numbers to count, found .*None"),
        (histogram([[1.0], [1.0, 2.0]]), "expected numbers to count, found lists of different lengths"),
        (histogram([1e308, -1e308]), "expected numbers to count, found -1e.308 to 1e.308: "),
        (histogram([np.nan] * 3), "expected finite numbers to count, found none"),
        (histogram([]), "expected finite numbers to count, found none"),
        (histogram([1.0], bins=0), "bins: expected a whole number above 0, found 0"),
        (histogram([1.0], bins="auto"), "bins: expected a whole number above 0, found 'auto'"),
        (histogram(([1.0, -1.0], [0.0, 1.0, 2.0])), "expected counts from 0, found -1.0 to 1.0"),
        (histogram(([1.0, 1.0], [0.0, 2.0, 1.0])), r"expected edges that rise, found \[0.0, 2.0, 1.0\]"),
        (histogram(([1.0], [0.0, 1.0, 2.0])), "expected counts and one edge more, found 1 and 3"),
        ("nowhere.mp4", "expected a video file, found nothing at nowhere.mp4"),
        (wandb.Table(columns=["a"]), "expected one of Video, Image, Html, Histogram, found wandb.Table"),
    ],
)
def test_what_is_no_media_is_refused_by_its_key(tmp_path, value, words):
    store = MediaStore(tmp_path)
    media = EpisodeMedia(store.keep, store.discard)
    with pytest.raises(MediaError, match=f"media 'walk/x': .*{words}"):
        media["walk/x"] = value
    assert not media
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["a.mp4", "a.png", "a.gif"])
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path, store, name):
    (tmp_path / name).write_text("no picture")
    with pytest.raises(MediaError, match=r"media 'x': expected an? (video|image), found a file that"):
        store.keep("x", tmp_path / name)


@pytest.mark.parametrize("name", ["", " ", 3, "\ud800"])
def test_a_name_is_a_word(store, name):
    with pytest.raises(MediaError, match="expected a name"):
        store.keep(name, RED[0])


def test_names_never_lead_out_of_the_run_folder(store, tmp_path):
    (kept,) = store.keep("../../.x/..", image(RED[0]))
    assert kept.path.resolve().is_relative_to((tmp_path / "run" / "media").resolve())
