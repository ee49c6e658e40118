"""A clip made of the pictures that another library's environments give."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mimickit.interop.players import Played, Player
from mimickit.util.keys import ConfigError, as_float
from mimickit.video.clip import Clip, Episode
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.files.frame_writer import Writer, finalize, limit_fps, open_writer
from mimickit.video.files.names import beside, discard_part, part_of, reserve_name

DEFAULT_FPS = 30.0  # of environments that don't say
Frame = NDArray[np.uint8]


class RenderFilm:
    """Films the environments that config names, side by side if there are several, one picture a step."""

    def __init__(self, path: Path, player: Player, config: VideoConfig) -> None:
        """Raises VideoError where nothing can be written."""
        self._player, self._config = player, config
        self._notes: list[str] = []
        self._fps = self._choose_fps()
        self._path = reserve_name(path)
        self._writer: Writer | None = None
        self._frames = 0
        self._episodes: list[Episode] = []
        self._current: dict[int, Episode] = {}

    def _choose_fps(self) -> float:
        said = self._player.facts().get("render_fps")
        if said is None and self._config.fps is None:
            self._notes.append(f"fps: {DEFAULT_FPS:g}, since the environment's metadata has no render_fps")
        own = DEFAULT_FPS if said is None else as_float(said, "render_fps", "eval_venv: metadata")
        return limit_fps(self._config.fps or own, self._config.format)

    @property
    def is_full(self) -> bool:
        """Whether the clip is as long as it may be."""
        limit = self._config.max_seconds
        return limit is not None and self._frames >= limit * self._fps

    def add(self, played: Played) -> None:
        """The state after a step, or the first.

        Raises:
            ConfigError: the environment gives no pictures. VideoError: they can't be written.
        """
        shows_end = self._player.shows_end
        for env in self._config.env_ids:
            self._count(env, played, shows_end=shows_end)
        if played.is_last and not shows_end:  # the pictures show a beginning that belongs to no episode of the film
            return
        frame = self._picture()
        if self._writer is None:
            self._shape = height, width = frame.shape[:2]
            self._writer = open_writer(
                part_of(self._path), width=width, height=height, fps=self._fps, quality=self._config.quality,
                video_format=self._config.format, codec=self._config.codec, hardware=self._config.hardware,
            )  # fmt: skip
        self._writer.write(frame)
        self._frames += 1

    def _count(self, env: int, played: Played, *, shows_end: bool) -> None:
        """The account of an environment's episodes: their frames, lengths and returns."""
        episode, is_done = self._current.get(env), bool(played.done[env])
        if episode is None:
            episode = Episode(first_frame=self._frames, num_frames=1, env_id=env, episode_return=0.0)
            self._current[env] = episode
            self._episodes.append(episode)
            return
        episode.length += 1
        episode.num_frames += shows_end or not is_done
        episode.episode_return = (episode.episode_return or 0.0) + float(played.reward[env])
        if is_done:
            episode.outcome = "done"
            del self._current[env]
            if not shows_end and not played.is_last:
                self._count(env, played, shows_end=shows_end)

    def _picture(self) -> Frame:
        pictures = self._player.pictures()
        shown = [_checked(pictures[env]) for env in self._config.env_ids]
        frame = shown[0] if len(shown) == 1 else _side_by_side(shown)
        height, width = frame.shape[:2]
        if (height % 2 or width % 2) and not self._notes:
            self._notes.append(f"size: {width}x{height} rendered, a line added: players of H.264 need even numbers")
        return np.pad(frame, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")

    def finish(self, step: int | None) -> Clip | None:
        """Complete the clip and its side file; None if there is no picture. Raises VideoError."""
        writer, self._writer = self._writer, None
        if writer is None:
            discard_part(part_of(self._path))
            return None
        writer.close()
        path = finalize(writer.part, self._path)
        for episode in self._current.values():  # under way
            episode.episode_return = None
        height, width = self._shape
        clip = Clip(
            path=path, side_file=beside(path, ".json"), fps=self._fps, num_frames=writer.num_frames, width=width,
            height=height, engine="render()", env_id=self._config.env_ids[0], env_ids=self._config.env_ids,
            camera="render()", episodes=tuple(self._episodes), samples=step, notes=(*self._notes, *writer.notes),
        )  # fmt: skip
        try:
            clip.write_side_file()
        except OSError as error:
            raise VideoError(f"{clip.side_file}: can't be written: {error.strerror or error}") from error
        return clip


def _checked(picture: object) -> Frame:
    """A picture (height, width, 3) uint8 RGB."""
    if not isinstance(picture, np.ndarray) or picture.ndim != 3 or picture.shape[-1] != 3 or picture.dtype != np.uint8:
        found = f"{picture.dtype} {picture.shape}" if isinstance(picture, np.ndarray) else type(picture).__name__
        raise ConfigError(
            f"eval_venv: render() gave {found}; expected uint8 (height, width, 3): make it with render_mode='rgb_array'"
        )
    return picture


def _side_by_side(pictures: list[Frame]) -> Frame:
    """A grid of pictures of one size, in rows; missing ones are black."""
    columns = int(np.ceil(np.sqrt(len(pictures))))
    blank = [np.zeros_like(pictures[0])] * (-len(pictures) % columns)
    tiles = [*pictures, *blank]
    rows = [np.concatenate(tiles[i : i + columns], axis=1) for i in range(0, len(tiles), columns)]
    return np.concatenate(rows, axis=0)
