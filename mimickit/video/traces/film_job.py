"""Films a finished trace in a process of its own, while the simulation goes on."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError

_NICENESS = 10


class FilmJob:
    """A process that films one trace."""

    def __init__(self, trace_file: Path, config: VideoConfig, path: Path) -> None:
        """Start it. Raises VideoError where no process can be started."""
        self.trace_file = trace_file
        order = json.dumps({"trace": str(trace_file), "config": config.to_mapping(), "path": str(path)})
        # files, not pipes: nobody reads while it runs
        self._output, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "mimickit.video.traces.film_job", order],
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._errors,
                start_new_session=True,  # the terminal's Ctrl-C is not for it
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # cameras of one's own
            )
        except OSError as error:
            self._close()
            raise VideoError(f"{trace_file}: can't start a process to film it: {error.strerror or error}") from error

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def result(self) -> list[Clip]:
        """The clips; waits for them. Raises VideoError with the cause if it failed."""
        code = self._process.wait()
        try:
            if code != 0:
                self._errors.seek(0)
                lines = self._errors.read().decode(errors="replace").strip().splitlines()
                cause = lines[-1] if lines else f"its process ended with code {code}"
                raise VideoError(f"{cause}; the trace is in {self.trace_file}")
            self._output.seek(0)
            side_files = json.loads(self._output.read())
            return [Clip.load(Path(side_file)) for side_file in side_files]
        finally:
            self._close()

    def _close(self) -> None:
        self._output.close()
        self._errors.close()


def main(order: str) -> None:
    """The process: films, and prints the side files' names as JSON."""
    from mimickit.video.traces.refilm import film_recorded

    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    asked = json.loads(order)
    config = VideoConfig.from_mapping(asked["config"], "deferred film")
    try:
        clips = film_recorded(Path(asked["trace"]), config, Path(asked["path"]))
    except (VideoError, ValueError) as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps([str(clip.side_file) for clip in clips]))


if __name__ == "__main__":
    main(sys.argv[1])
