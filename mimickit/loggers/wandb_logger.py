"""Weights & Biases, also offline: numbers on the axis of samples, clips as they are."""

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mimickit.loggers.base import STEP_KEY, Logger, MissingLibraryError, media_path
from mimickit.media.types import HTML, File, Histogram, Image, Media, Video
from mimickit.util.files import FreePaths, copy_into, file_name
from mimickit.util.keys import ConfigError

_VIDEOS = (".gif", ".mp4", ".webm", ".ogg")  # that W&B plays
LOG = logging.getLogger("mimickit.loggers")


class WandbLogger(Logger):
    """One W&B run.

    Every row carries its number of samples, and samples is declared as the step axis of all keys; W&B's own
    step counter only counts rows. So no value is dropped, whatever the order in which numbers and media
    arrive.
    """

    NAME = "W&B"
    MEDIA = (Video, Image, HTML, Histogram, File)

    def __init__(
        self,
        out_dir: str | Path,
        *,
        config: Mapping[str, Any] | None = None,
        run_name: str | None = None,
        project: str = "mimickit",
        group: str | None = None,
        tags: Sequence[str] = (),
        mode: Literal["online", "offline", "disabled"] | None = None,
        run_id: str | None = None,
        keeps_model: bool = False,
    ) -> None:
        """Begin a run, or go on with one.

        Args:
            out_dir: the run folder; all files of the run are copied below it.
            config: all arguments and YAML. run_name: default the run folder's name.
            project, group, tags: as in W&B. mode: online, offline (no account, no network) or disabled;
                default what WANDB_MODE says, else online where W&B has a key for this machine, else offline.
            run_id: the id of a run to go on with; rows that a killed training had logged past its checkpoint stay,
                since W&B takes none back, and the resumed training's stand beside them.
            keeps_model: upload the trained model as an artifact.

        Raises:
            MissingLibraryError: the wandb package is missing. ConfigError: W&B refuses or can't be reached.
        """
        super().__init__()
        try:
            import wandb
        except ImportError:
            raise MissingLibraryError("--logger wandb needs W&B: pip install wandb") from None
        self._wandb: Any = wandb
        self._dir = Path(out_dir).resolve()
        self._free = FreePaths()
        self._dir.mkdir(parents=True, exist_ok=True)
        self._keeps_model = keeps_model
        options: dict[str, Any] = {"group": group, "tags": list(tags) or None, "id": run_id}
        try:
            self._run: Any = wandb.init(
                dir=str(self._dir),
                project=project,
                name=run_name or self._dir.name,
                config=dict(config or {}),
                mode=mode or _default_mode(wandb),
                resume="allow" if run_id else None,
                reinit="create_new",
                settings=wandb.Settings(console="off", silent=True),
                **options,
            )
        except wandb.errors.Error as err:
            raise ConfigError(f"--logger wandb: {err} (--wandb_mode offline needs no network)") from None
        if not self._run.offline and self._run.url:
            LOG.info("W&B run: %s", self._run.url)
        self._run.define_metric(STEP_KEY, hidden=True)
        self._run.define_metric("*", step_metric=STEP_KEY, step_sync=True)

    @property
    def run_id(self) -> str:
        """The run's id, with which it can be gone on with."""
        return str(self._run.id)

    def _write_row(self, row: Mapping[str, float], step: int) -> None:
        self._run.log({**row, STEP_KEY: step})

    def _write_media(self, key: str, items: Sequence[Media], step: int) -> None:
        values = [self._value(key, item) for item in items]
        for kind in dict.fromkeys(map(type, values)):
            alike = [value for value in values if type(value) is kind]
            # W&B shows several clips, pictures or pages under one key together; of anything else one a row
            is_list = len(alike) > 1 and kind in (self._wandb.Video, self._wandb.Image, self._wandb.Html)
            for value in [alike] if is_list else alike:
                self._run.log({key: value, STEP_KEY: step})

    def _value(self, key: str, item: Media) -> Any:
        caption = item.caption or item.path.name
        if isinstance(item, Video) and item.path.suffix.lower() in _VIDEOS:
            return self._wandb.Video(str(item.path), caption=caption, format=_format(item.path))
        if isinstance(item, Image):
            return self._wandb.Image(str(item.path), caption=caption)
        if isinstance(item, HTML):
            return self._wandb.Html(item.path.read_text(encoding="utf-8"), inject=False)
        if isinstance(item, Histogram):
            return self._wandb.Histogram(np_histogram=item.read())
        return self._keep(key, item.path) if item.path.is_file() else media_path(item.path, self._dir)

    def _keep(self, key: str, path: Path) -> str:
        """Copy a file to those of the W&B run; returns its name among them."""
        folder = Path(self._run.dir)
        kept = copy_into(path, folder / "media" / "file" / file_name(key), self._free)
        self._run.save(str(kept), base_path=str(folder), policy="now")
        return kept.relative_to(folder).as_posix()

    def write_model(self, path: Path, step: int) -> None:
        """Upload a model as a new version of the artifact NAME-model, if that was asked for."""
        if self._keeps_model:
            name = f"{file_name(str(self._run.name or self._dir.name))}-model"
            artifact = self._wandb.Artifact(name, type="model", metadata={STEP_KEY: step})
            artifact.add_file(str(path), name=path.name)
            self._run.log_artifact(artifact)

    def _close(self) -> None:
        self._run.finish(exit_code=1 if self.run_failed else 0)


def _format(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")


def _default_mode(wandb: Any) -> Literal["online", "offline"] | None:
    if os.environ.get("WANDB_MODE"):
        return None  # wandb reads it
    if wandb.api.api_key:
        return "online"
    LOG.warning("W&B logger: no account is set up here; the run is kept offline (wandb sync uploads it later)")
    return "offline"
