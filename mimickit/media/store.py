"""Puts media into the run folder: files are copied, arrays are encoded, and what comes back is a path."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mimickit.media.types import (
    CLIPS_DIR,
    HTML,
    MEDIA_DIR,
    File,
    Frames,
    Histogram,
    Image,
    Media,
    MediaError,
    Video,
)
from mimickit.media.values import Unsaved, as_unsaved, is_text
from mimickit.util.files import FreePaths, copy_into, file_name, remove
from mimickit.video.errors import VideoError

_SUFFIXES: dict[type[Media], str] = {Video: ".mp4", Image: ".png", Histogram: ".json", HTML: ".html"}
_KINDS: dict[str, type[Media]] = {kind.KIND: kind for kind in (Video, Frames, Image, HTML, File, Histogram)}


class MediaStore:
    """The folder media of a run. What is kept stays as it was when it was attached: files are copied, also those of the
    run folder, but for the recorder's clips and those that were made here.
    """

    def __init__(self, run_folder: Path, *, fps: float = 30.0) -> None:
        """fps: of clips that are given as frames and say nothing of it."""
        self._root = run_folder
        self._fps = fps
        self._free = FreePaths()
        self._uses: Counter[Path] = Counter()  # of files that were made here: how often each is attached

    def keep(self, name: str, value: object, *, stem: str = "") -> list[Media]:
        """Check and keep what was attached under a name: one value, or a list of several.

        Args:
            stem: of files that are made here; default: the name.

        Raises:
            MediaError: naming name: nothing that can be media, a file that isn't there or isn't what it says, or one
                that can't be written.
        """
        if not is_text(name) or not name.strip():
            raise MediaError(f"media {name!r}: expected a name")
        if isinstance(value, (list, tuple)) and not _is_picture(value):
            kept: list[Media] = []
            try:
                kept.extend(self._keep_one(name, part, stem or name) for part in value)
            except MediaError:
                self.discard(kept)
                raise
            return kept
        return [self._keep_one(name, value, stem or name)]

    def discard(self, items: Iterable[Media]) -> None:
        """Forget what keep() returned; files that were made here, and are attached nowhere else, are removed."""
        for path in [item.path for item in items if item.path in self._uses]:
            self._uses[path] -= 1
            if not self._uses[path]:
                del self._uses[path]
                remove(path)

    def pack(self, item: Media) -> dict[str, Any]:
        """Plain values for a checkpoint, which counts as a use of the file."""
        if item.path in self._uses:
            self._uses[item.path] += 1
        facts = {key: self._places(value) if isinstance(value, Path) else value for key, value in vars(item).items()}
        return {"type": item.KIND, **facts}

    def unpack(self, name: str, entry: Mapping[str, Any]) -> Media:
        """What pack() was given. What lies in another run folder, of which this one goes on, is copied.

        Raises:
            MediaError: the file is gone.
        """
        facts: dict[str, Any] = {k: self._find(v) if isinstance(v, dict) else v for k, v in entry.items()}
        item = _KINDS[str(facts.pop("type"))](**facts)
        if not item.path.is_relative_to(self._root / MEDIA_DIR):
            return self._keep_one(name, item, name)
        item.validate(name)
        return self._made(item)

    def _places(self, path: Path) -> dict[str, str]:
        """Where a file is, also after its run folder has been moved."""
        path, root = path.resolve(), self._root.resolve()
        inside = {"inside": path.relative_to(root).as_posix()} if path.is_relative_to(root) else {}
        return {"path": str(path), **inside}

    def _find(self, places: Mapping[str, str]) -> Path:
        path, root = Path(places["path"]), self._root.resolve()
        if "inside" in places and not path.exists():
            return self._root / places["inside"]
        return self._root / path.relative_to(root) if path.is_relative_to(root) else path

    def _keep_one(self, name: str, value: object, stem: str) -> Media:
        try:
            if isinstance(value, Media):
                value.validate(name)
                if self._is_kept(value.path):
                    return self._made(value)
            unsaved = as_unsaved(name, value)
            if isinstance(unsaved.data, Path):
                return self._keep_file(name, unsaved, value)
            return self._made(self._write(name, unsaved, stem))
        except MediaError:
            raise
        except (OSError, VideoError) as error:
            raise MediaError(f"media {name!r}: can't be kept: {error}") from error
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # of what a value turned out to be
            found = f"{type(value).__name__}: {type(error).__name__}: {error}"
            raise MediaError(f"media {name!r}: expected media, found {found}") from error

    def _keep_file(self, name: str, unsaved: Unsaved, value: object) -> Media:
        source: Path = unsaved.data
        found: Media = value if isinstance(value, Media) else unsaved.kind(path=source, caption=unsaved.caption)
        found.validate(name)
        facts = _look_into(name, found)
        if self._is_kept(source):
            return self._made(replace(found, **facts))
        path = copy_into(source, self._folder(name), self._free)
        if isinstance(found, Video):
            facts["side_file"] = None  # it stays where it is
        return self._made(replace(found, path=path, **facts))

    def _made(self, item: Media) -> Media:
        """An item that is attached, for the first time or once more."""
        if item.path.is_relative_to(self._root / MEDIA_DIR):
            self._uses[item.path] += 1
        return item

    def _is_kept(self, path: Path) -> bool:
        """Whether a file was made here, or is a finished clip of the recorder: it will not change."""
        if path in self._uses:
            return True
        from mimickit.video.files.names import beside

        inside = path.resolve().is_relative_to((self._root / CLIPS_DIR).resolve())
        return inside and beside(path, ".json").is_file()

    def _write(self, name: str, unsaved: Unsaved, stem: str) -> Media:
        folder = self._folder(name)
        folder.mkdir(parents=True, exist_ok=True)
        path = self._free(folder / (file_name(stem) + _SUFFIXES[unsaved.kind]))
        caption = unsaved.caption or path.stem
        if unsaved.kind is Video:
            return _write_clip(path, unsaved.data, unsaved.fps or self._fps, caption)
        part = path.with_name(f".{path.name}.part")
        try:
            part.write_bytes(_content(unsaved))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        return unsaved.kind(path=path, caption=caption)

    def _folder(self, name: str) -> Path:
        return self._root.joinpath(MEDIA_DIR, *map(file_name, name.split("/")))


def _is_picture(value: Sequence[object]) -> bool:
    """Whether a list is one of pictures, which make one clip, or of numbers, rather than one of several media."""
    return bool(value) and all(hasattr(part, "shape") and len(part.shape) in (2, 3) for part in value)


def _write_clip(path: Path, frames: NDArray[np.uint8], fps: float, caption: str) -> Video:
    """Encode frames (T, H, W, 3), odd sides rounded up, as players of H.264 need it. Raises VideoError, OSError."""
    from mimickit.video.files.frame_writer import FrameWriter, finalize

    height, width = (side + side % 2 for side in frames.shape[1:3])
    part = path.with_name(f"{path.name}.part")
    writer = FrameWriter(part, width=width, height=height, fps=fps)
    try:
        for frame in frames:
            rest = ((0, height - frame.shape[0]), (0, width - frame.shape[1]), (0, 0))
            writer.write(np.ascontiguousarray(np.pad(frame, rest, mode="edge")))
        writer.close()
        path = finalize(part, path)
    except BaseException:
        writer.abort()
        part.unlink(missing_ok=True)
        raise
    return Video(path=path, caption=caption, fps=fps, num_frames=len(frames), width=width, height=height)


def _content(unsaved: Unsaved) -> bytes:
    if unsaved.kind is Image:
        from mimickit.video.files.frame_folder import encode_png

        return encode_png(unsaved.data)
    if unsaved.kind is Histogram:
        counts, edges = unsaved.data
        return json.dumps({"counts": counts.tolist(), "edges": edges.tolist()}).encode()
    return str(unsaved.data).encode("utf-8")


def _look_into(name: str, media: Media) -> dict[str, Any]:
    """Facts about a file that can be read from it. Raises MediaError if it isn't what its name says."""
    import cv2

    is_gif = media.path.suffix.lower() == ".gif"  # older versions of OpenCV read none
    if isinstance(media, Image) and not (is_gif or cv2.haveImageReader(str(media.path))):
        raise MediaError(f"media {name!r}: expected an image, found a file that is none: {media.path}")
    if not isinstance(media, Video):
        return {}
    reader = cv2.VideoCapture(str(media.path))
    try:
        if not reader.isOpened() or not reader.grab():
            raise MediaError(f"media {name!r}: expected a video, found a file that can't be played: {media.path}")
        found = {
            "fps": reader.get(cv2.CAP_PROP_FPS),
            "num_frames": int(reader.get(cv2.CAP_PROP_FRAME_COUNT)),
            "width": int(reader.get(cv2.CAP_PROP_FRAME_WIDTH)),
            "height": int(reader.get(cv2.CAP_PROP_FRAME_HEIGHT)),
        }
    finally:
        reader.release()
    return {key: value for key, value in found.items() if value > 0 and getattr(media, key) is None}
