"""Runs what the command line asks for, and answers with an exit code."""

import logging
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

from mimickit.cli import build
from mimickit.cli.help import help_text
from mimickit.cli.options import WITHOUT_SIMULATION, Mode, read_request
from mimickit.cli.results import Report
from mimickit.cli.run_folder import RunFolder, make_run_folder
from mimickit.cli.settings import DEFAULT_EPISODES, Settings, load_settings
from mimickit.cli.sources import true_sources
from mimickit.factory import MODEL_FILE
from mimickit.loggers.base import Logger, MissingLibraryError, log_numbers
from mimickit.media.types import CLIPS_DIR, MEDIA_KEY, join_media
from mimickit.util.keys import ConfigError
from mimickit.video.errors import VideoError

LOG = logging.getLogger("mimickit.cli")
EXIT_OK, EXIT_FAILED, EXIT_USAGE = 0, 1, 2
EXIT_SIGNAL = 128  # plus the signal's number: 130 for Ctrl-C, 143 for kill


class _Stop(KeyboardInterrupt):
    """A signal that asks the run to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = EXIT_SIGNAL + number


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line (sys.argv by default); returns the exit code.

    0: done. 1: the run failed. 2: something in the command line or a configuration file can't be. 130: Ctrl-C
    (143: kill); the film is finished and results so far are saved before.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if any(word in ("-h", "--help") for word in words):
        print(help_text())
        return EXIT_OK
    with _log_to_stderr(), _signals_caught():
        try:
            request = read_request(words)
            if request.options.mode in WITHOUT_SIMULATION:
                from mimickit.cli.film import run_without_simulation

                run_without_simulation(request)
                return EXIT_OK
            if request.options.mode is Mode.SIM2SIM:
                from mimickit.cli.sim2sim import run_sim2sim

                run_sim2sim(request, lambda test: _run(load_settings(test), words)[1])
                return EXIT_OK
            if request.options.mode is Mode.GROUP:
                from mimickit.cli.group import run_group

                return EXIT_OK if run_group(request) else EXIT_FAILED
            return _run(load_settings(request), words)[0]
        except (Exception, KeyboardInterrupt) as err:
            return _explain(err)


def _explain(err: BaseException) -> int:
    """Say what ended the run; returns the exit code. Only what nobody foresaw gets a traceback."""
    if isinstance(err, KeyboardInterrupt):
        return err.code if isinstance(err, _Stop) else EXIT_SIGNAL + signal.SIGINT
    if isinstance(err, VideoError):
        print(f"error: filming failed: {err}", file=sys.stderr)
        return EXIT_FAILED
    if _is_refusal(err):
        print(f"error: {err}", file=sys.stderr)
        return EXIT_USAGE
    traceback.print_exception(err)
    return EXIT_FAILED


def _is_refusal(err: BaseException) -> bool:
    """Whether a part has refused a value or file that it read: a configuration, a clip, a character, a model."""
    refused = isinstance(err, ValueError) and type(err).__module__.startswith("mimickit.")
    return refused or isinstance(err, MissingLibraryError)


@contextmanager
def _log_to_stderr() -> Iterator[None]:
    """Show what the parts report, for as long as the run lasts."""
    root, handler = logging.getLogger("mimickit"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    level, propagate = root.level, root.propagate
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
        root.propagate = propagate


@contextmanager
def _signals_caught() -> Iterator[None]:
    """The first SIGINT or SIGTERM ends the run; the second is told to wait; the third ends the waiting."""
    count = 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal count
        count += 1
        if count == 2:
            print("still finishing the film; once more to give it up", file=sys.stderr, flush=True)
        else:
            raise _Stop(number)

    if threading.current_thread() is not threading.main_thread():  # Python delivers signals to no other
        yield
        return
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# ---------------------------------------------------------------------- the run


@dataclass
class _Parts:
    """What has been built so far."""

    report: Report
    engine: Any = None
    env: Any = None
    observer: Any = None  # of callbacks, if there are any
    agent: Any = None
    logger: Logger | None = None
    iteration: int = 0  # of the agent before this run

    def close(self) -> None:
        """Finish the film, then close everything that was built."""
        if self.env is not None:
            self.env.close()
        elif self.engine is not None:
            self.engine.close()
        if self.logger is not None:
            self.logger.close()


def _run(settings: Settings, argv: list[str]) -> tuple[int, dict[str, Any]]:
    """The exit code, and what result.json holds."""
    with make_run_folder(settings) as folder, true_sources(*settings.blocks):
        parts = _Parts(Report(settings, folder.path))
        try:
            build.prepare_torch(settings)
            _build(parts, settings, argv)
            result = _work(parts, settings)
            return _exit_code(settings, result), parts.report.finish(result)
        except KeyboardInterrupt:
            folder.begun = parts.logger is not None
            _finish_interrupted(parts)
            raise
        except Exception as err:
            folder.begun = parts.logger is not None and _has_begun(parts, folder, err)
            if parts.logger is not None:
                parts.logger.run_failed = True
            raise
        finally:
            parts.close()


def _has_begun(parts: _Parts, folder: RunFolder, err: Exception) -> bool:
    """Whether err ended the work when there was something to keep, rather than refused it at its start."""
    trained = parts.agent is not None and parts.agent.iteration > parts.iteration
    return trained or folder.has_new(CLIPS_DIR) or not _is_refusal(err)


def _build(parts: _Parts, settings: Settings, argv: list[str]) -> None:
    from mimickit.cli.play import has_free_action  # brings torch, for which --help need not wait

    out_dir = parts.report.out_dir
    parts.engine = build.build_engine(settings, out_dir)
    parts.env = build.build_env(settings, parts.engine)
    parts.env, parts.observer = build.add_callbacks(settings, parts.env, out_dir)
    mode = settings.options.mode
    if mode is Mode.TRAIN or (mode is Mode.TEST and has_free_action(parts.env)):
        parts.agent = build.build_agent(settings, parts.env)
        if parts.observer is not None:
            parts.observer.follow(parts.agent)
            parts.agent.observer = parts.observer
        _load_model(parts, settings)
    config = settings.to_dict(argv)
    build.save_config(config, out_dir)
    parts.logger = build.build_logger(settings, out_dir, config, _samples(parts))
    if parts.engine.enabled_record_video():
        facts = {"engine": settings.engine.name("engine_name"), "seed": settings.options.rand_seed}
        parts.engine.get_video_recorder().set_context(model_file=str(parts.report.model_file or ""), **facts)


def _load_model(parts: _Parts, settings: Settings) -> None:
    if settings.resume is not None:
        parts.agent.load_checkpoint(settings.resume)
        parts.iteration = parts.agent.iteration
        parts.report.started -= parts.agent.wall_seconds
    elif settings.model_file is not None:
        parts.agent.load(settings.model_file)
        parts.report.model_file = settings.model_file
    elif settings.options.mode is Mode.TEST:
        raise ConfigError(f"--model_file is missing: expected the policy to test in {settings.env.source}")


def _work(parts: _Parts, settings: Settings) -> dict[str, Any]:
    assert parts.logger is not None
    if settings.options.mode is Mode.TRAIN:
        result = dict(
            parts.agent.train(
                max_samples=settings.options.max_samples or sys.maxsize,
                out_dir=parts.report.out_dir,
                logger=parts.logger,
                save_int_models=settings.options.save_int_models,
            )
        )
        if settings.video.enabled and settings.video.final and "num_eps" not in result:  # training made no test
            parts.env.set_training_ended(True)
            test = parts.agent.test(settings.test_episodes or DEFAULT_EPISODES[Mode.TEST])
            _write_result(parts, test, "test")
            result |= test | {MEDIA_KEY: join_media(result.get(MEDIA_KEY, {}), test[MEDIA_KEY])}
        _keep_model(parts)
        late = parts.env.pop_media(wait=True)
        parts.logger.write_media(late, _samples(parts))
        return {**result, MEDIA_KEY: join_media(result.get(MEDIA_KEY, {}), late)}
    from mimickit.cli.play import play

    episodes = settings.test_episodes or 1
    if parts.agent is None:
        result = play(parts.env, episodes, parts.observer)
    else:
        result = {**parts.agent.test(episodes), "samples": _samples(parts)}
    result[MEDIA_KEY] = join_media(result.get(MEDIA_KEY, {}), parts.env.pop_media(wait=True))
    _write_result(parts, result)
    return result


def _keep_model(parts: _Parts) -> None:
    path = parts.report.out_dir / MODEL_FILE
    if parts.logger is not None and path.is_file():
        parts.logger.write_model(path, _samples(parts))


def _write_result(parts: _Parts, result: Mapping[str, Any], collection: str | None = None) -> None:
    assert parts.logger is not None
    log_numbers(parts.logger, result, collection)
    parts.logger.write(_samples(parts))
    parts.logger.write_media(result.get(MEDIA_KEY) or {}, _samples(parts))


def _samples(parts: _Parts) -> int:
    return int(getattr(parts.agent, "samples", 0))


def _finish_interrupted(parts: _Parts) -> None:
    """After Ctrl-C: finish the film, write down what there is."""
    print("interrupted", file=sys.stderr, flush=True)
    if parts.env is None or parts.logger is None:
        return
    parts.env.close()
    fresh = parts.env.pop_media()
    result: dict[str, Any] = {} if parts.agent is None else dict(parts.agent.interrupted)
    delivered = result.pop(MEDIA_KEY, {})  # by the last test in training, whose figures and clips are logged already
    training = parts.report.settings.options.mode is Mode.TRAIN
    _write_result(parts, {MEDIA_KEY: fresh} if training else {**result, MEDIA_KEY: fresh})
    if training:
        _keep_model(parts)
    clips = join_media(delivered, fresh)
    samples = {} if parts.agent is None else {"samples": _samples(parts)}
    parts.report.finish({**result, **samples, MEDIA_KEY: clips}, interrupted=True)


def _exit_code(settings: Settings, result: dict[str, Any]) -> int:
    """A view that left no film has failed; a test or a training has not, its figures stand."""
    if settings.options.mode is Mode.VIEW and settings.video.enabled and not result.get(MEDIA_KEY):
        LOG.error("no clip was filmed")
        return EXIT_FAILED
    return EXIT_OK
