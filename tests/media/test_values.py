"""What can be attached: it becomes a file of the run folder, or is refused by its key."""

import cv2
import numpy as np
import pytest
import torch
import wandb

from mimickit.media import file, histogram, html, image, video
from mimickit.media.episode import EpisodeMedia
from mimickit.media.store import MediaStore
from mimickit.media.types import HTML, File, Histogram, Image, MediaError, Video
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


def test_a_file_of_the_run_folder_stays_where_it_is(store, tmp_path):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "own.txt"
    path.write_text("x")
    (kept,) = store.keep("own", path)
    assert kept.path == path


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "expected media, a path, pictures or a W&B value, found object"),
        (3.5, "found float"),
        (np.zeros((2, 2, 2, 2, 2), np.uint8), r"expected frames .*found shape \(2, 2, 2, 2, 2\)"),
        (RED.astype(np.float32), "expected frames .*uint8, found float32"),
        (RED[:0], r"found shape \(0, 33, 41, 3\)"),
        (np.zeros((5, 6, 7), np.uint8), r"expected a picture .*found shape \(5, 6, 7\)"),
        (video(RED, fps=0), "fps: expected a number above 0, found 0"),
        ("nowhere.mp4", "expected a video file, found nothing at nowhere.mp4"),
        (wandb.Table(columns=["a"]), "expected one of Video, Image, Html, Histogram, found wandb.Table"),
    ],
)
def test_what_is_no_media_is_refused_by_its_key(tmp_path, value, words):
    media = EpisodeMedia(MediaStore(tmp_path).keep)
    with pytest.raises(MediaError, match=f"media 'walk/x': .*{words}"):
        media["walk/x"] = value
    assert not media
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize("name", ["a.mp4", "a.png", "a.gif"])
def test_a_file_that_is_not_what_its_name_says_is_refused(tmp_path, store, name):
    (tmp_path / name).write_text("no picture")
    with pytest.raises(MediaError, match=r"media 'x': expected an? (video|image), found a file that"):
        store.keep("x", tmp_path / name)


@pytest.mark.parametrize("name", ["", " ", 3])
def test_a_name_is_a_word(store, name):
    with pytest.raises(MediaError, match="expected a name"):
        store.keep(name, RED[0])


def test_names_never_lead_out_of_the_run_folder(store, tmp_path):
    (kept,) = store.keep("../../.x/..", image(RED[0]))
    assert kept.path.resolve().is_relative_to((tmp_path / "run" / "media").resolve())
