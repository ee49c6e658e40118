"""Films a finished trace in a process of its own, while the simulation goes on."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import Future
from pathlib import Path

from mimickit.video.clip import Clip
from mimickit.video.config import VideoConfig
from mimickit.video.errors import VideoError
from mimickit.video.files.names import beside
from mimickit.video.production import Wrap

_NICENESS = 10


class FilmJob:
    """A process that films one trace, started as soon as the trace is complete. Nobody waits for either."""

    def __init__(self, recorded: "Future[Wrap]", config: VideoConfig, path: Path) -> None:
        """recorded: the recording of which only a trace is kept."""
        self._recorded, self._config, self._path = recorded, config, path
        self._output, self._errors = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        self._process: subprocess.Popen[bytes] | None = None
        self._failure: Exception | None = None
        self._is_started = threading.Event()
        recorded.add_done_callback(self._start)

    def wait_for_trace(self) -> None:
        """Until the trace is complete, or has failed."""
        self._is_started.wait()

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""
        return self._is_started.is_set() and (self._process is None or self._process.poll() is not None)

    def result(self) -> list[Clip]:
        """The clips; waits for them. Raises VideoError with the cause if it failed."""
        self.wait_for_trace()
        try:
            if self._process is None:
                failure = self._failure
                raise failure if isinstance(failure, VideoError) else VideoError(f"{self._path}: {failure}")
            code = self._process.wait()
            if code != 0:
                self._errors.seek(0)
                lines = self._errors.read().decode(errors="replace").strip().splitlines()
                cause = lines[-1] if lines else f"its process ended with code {code}"
                raise VideoError(f"{cause}; the trace is in {self._recorded.result().trace}")
            self._output.seek(0)
            side_files = json.loads(self._output.read())
            return [Clip.load(Path(side_file)) for side_file in side_files]
        finally:
            self._output.close()
            self._errors.close()

    def _start(self, recorded: "Future[Wrap]") -> None:
        """On the film crew's thread."""
        wrap = recorded.result()
        try:
            self._failure = wrap.error
            if wrap.error is None and wrap.trace is not None:
                self._process = self._launch(wrap.trace)
        except OSError as error:
            self._failure = VideoError(f"{wrap.trace}: can't start a process to film it: {error.strerror or error}")
        finally:
            self._is_started.set()

    def _launch(self, trace_file: Path) -> subprocess.Popen[bytes]:
        order = json.dumps({"trace": str(trace_file), "config": self._config.to_mapping(), "path": str(self._path)})
        return subprocess.Popen(
            [sys.executable, "-m", "mimickit.video.traces.film_job", order],
            stdin=subprocess.DEVNULL,
            stdout=self._output,  # files, not pipes: nobody reads while it runs
            stderr=self._errors,
            start_new_session=True,  # the terminal's Ctrl-C is not for it
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},  # cameras of one's own
        )


def main(order: str) -> None:
    """The process: films, and prints the side files' names as JSON."""
    from mimickit.video.traces.refilm import film_recorded

    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    asked = json.loads(order)
    config = VideoConfig.from_mapping(asked["config"], "deferred film")
    trace_file = Path(asked["trace"])
    try:
        if config.replay:
            from mimickit.video.pages.replay import write_replay

            write_replay([trace_file], beside(trace_file, ".html"))
        clips = film_recorded(trace_file, config, Path(asked["path"]))
    except (VideoError, ValueError) as error:
        sys.exit(str(error))
    sys.stdout.write(json.dumps([str(clip.side_file) for clip in clips]))


if __name__ == "__main__":
    main(sys.argv[1])
