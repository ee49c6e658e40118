"""Media values: what is accepted, and what the refusal says."""

import pytest

from mimickit.media.types import HTML, File, Image, MediaError, Video


def test_a_media_value_describes_itself(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(b"x")
    video = Video(path=str(path), fps=30.0, num_frames=90, caption="walk")
    video.validate("test")
    assert video.to_dict() == {
        "type": "video",
        "path": str(path),
        "fps": 30.0,
        "num_frames": 90,
        "caption": "walk",
    }


@pytest.mark.parametrize("kind", [Video, Image, HTML, File])
def test_a_missing_or_empty_file_is_refused_by_key(tmp_path, kind):
    path = tmp_path / "a.xyz"
    with pytest.raises(MediaError, match=rf"media 'mine': expected {kind.NOUN}, found nothing at .*a\.xyz"):
        kind(path=path).validate("mine")
    path.touch()
    with pytest.raises(MediaError, match=r"media 'mine': .* found an empty file"):
        kind(path=path).validate("mine")


def test_a_wrong_suffix_or_impossible_figures_are_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x")
    File(path=path).validate("mine")
    for kind in (Video, Image, HTML):
        with pytest.raises(MediaError, match=rf"expected {kind.NOUN} \(\..*found a\.txt"):
            kind(path=path).validate("mine")
    clip = tmp_path / "a.mp4"
    clip.write_text("x")
    with pytest.raises(MediaError, match="media 'mine': fps: expected a number above 0, found 0"):
        Video(path=clip, fps=0).validate("mine")
