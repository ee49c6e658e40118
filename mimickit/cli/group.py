"""A group of trainings: the same flags with several seeds or variants, one run after the other, and one page of all."""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mimickit.cli.build import WANDB_ID_FILE
from mimickit.cli.flags import Given, sort_words
from mimickit.cli.options import LIMITS, Request, all_flags, read_request
from mimickit.cli.results import PAGE_FILE, RESULT_FILE
from mimickit.cli.settings import load_settings
from mimickit.config import read_arg_file
from mimickit.util.files import file_name
from mimickit.util.keys import ConfigError, as_int
from mimickit.video.errors import VideoError
from mimickit.video.pages.group_page import write_group_page
from mimickit.video.pages.run_record import is_run, load_run

LOG = logging.getLogger("mimickit.cli")
_CHECKPOINT_FILE = "checkpoint.pt"
# flags of the group itself, which its runs get of their own or not at all
_OF_GROUP = ("mode", "arg_file", "out_dir", "seeds", "variants", "rand_seed", "run_name", "wandb_group", "wandb_id")


@dataclass(frozen=True)
class Member:
    """One run of a group."""

    name: str
    folder: Path
    flags: dict[str, tuple[str, ...]]

    @property
    def arg_file(self) -> Path:
        """With all its flags, so that it can be run anywhere: --arg_file FILE --out_dir FOLDER."""
        return self.folder.with_name(f"{self.name}.txt")

    @property
    def arg_text(self) -> str:
        """What is in it."""
        return "".join(" ".join((f"--{name}", *map(_quoted, words))) + "\n" for name, words in self.flags.items())


def run_group(request: Request) -> bool:
    """Train the runs of a group that are not finished yet, and write the page on which they stand side by side.

    Returns:
        whether all of them went well.

    Raises:
        ConfigError: a flag of one of them can't be; nothing has been run then. KeyboardInterrupt: after the run under
            way has ended as it does on Ctrl-C.
    """
    root = _root(request)
    members = plan_group(request, root)
    _write_arg_files(members, root)
    failed = []
    try:
        for number, member in enumerate(members, start=1):
            if _is_finished(member.folder):
                LOG.info("run %d of %d, %s: finished already", number, len(members), member.name)
                continue
            LOG.info("run %d of %d: %s", number, len(members), member.name)
            code = _run(member)
            if code != 0:
                LOG.error("%s ended with code %d", member.name, code)
                failed.append(member.name)
            _write_page(members, root)
    except KeyboardInterrupt:
        _write_page(members, root)
        raise
    page = _write_page(members, root)
    if page is not None:
        print(page, flush=True)
    return not failed


def plan_group(request: Request, root: Path) -> list[Member]:
    """The runs of a group: every variant with every seed. All their flags are checked. Raises ConfigError."""
    if request.options.max_samples is None:
        raise ConfigError("--max_samples is missing: the runs of a group have to end")
    base = {name: given.words for name, given in request.given.items() if name not in _OF_GROUP}
    group = request.options.wandb_group or root.resolve().name
    members = []
    for variant, own in _variants(request):
        for seed in _seeds(request):
            name = "_".join(filter(None, (variant, f"seed{seed}")))
            flags = {**base, **own, "rand_seed": (str(seed),), "run_name": (f"{group}_{name}",)}
            if "wandb" in flags.get("logger", ()):
                flags["wandb_group"] = (group,)
            members.append(Member(name, root / name, flags))
    for member in members:
        try:
            load_settings(read_request(_words(member)))
        except ConfigError as error:
            raise ConfigError(f"{member.name}: {error}") from None
    return members


def _root(request: Request) -> Path:
    if request.options.out_dir is not None:
        return request.options.out_dir
    name = request.options.wandb_group
    return Path("output") / (file_name(name) if name else f"group_{time.strftime('%Y-%m-%d_%H-%M-%S')}")


def _seeds(request: Request) -> list[int]:
    words = [word for words in request.options.seeds for word in words.split(",") if word]
    place = request.place("seeds")
    seeds = [as_int(word, "--seeds", place) for word in words] or [request.options.rand_seed]
    low, high = LIMITS["rand_seed"]
    for seed in seeds:
        if not low <= seed <= high or seeds.count(seed) > 1:
            raise ConfigError(f"{place}: expected different seeds from {low} to {high}, found {' '.join(words)}")
    return seeds


def _variants(request: Request) -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """Names and flags; without variants one that has neither."""
    names: set[str] = set()
    for path in request.options.variants:
        name = file_name(Path(path).stem)
        if name in names:
            raise ConfigError(f"{request.place('variants')}: two are called {name!r}")
        names.add(name)
        given: dict[str, Given] = sort_words(read_arg_file(path), all_flags())
        for flag, words in given.items():
            if flag in _OF_GROUP:
                raise ConfigError(f"{words.source}: --{flag} belongs to the group, not to a variant")
        yield name, {flag: words.words for flag, words in given.items()}
    if not names:
        yield "", {}


def _words(member: Member) -> list[str]:
    return [word for name, words in member.flags.items() for word in (f"--{name}", *words)]


# ---------------------------------------------------------------------- arg files


def _write_arg_files(members: list[Member], root: Path) -> None:
    for member in members:
        _check_unchanged(member)
    try:
        root.mkdir(parents=True, exist_ok=True)
        for member in members:
            member.arg_file.write_text(member.arg_text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--out_dir: can't write in {root}: {error.strerror}") from None


def _check_unchanged(member: Member) -> None:
    """A run that has begun goes on with the flags it was begun with. Raises ConfigError where others are asked for."""
    if not (is_run(member.folder) and member.arg_file.is_file()):
        return
    before, now = member.arg_file.read_text(encoding="utf-8").splitlines(), member.arg_text.splitlines()
    changed = [line for line in (*before, *now) if (line in before) != (line in now)]
    if changed:
        raise ConfigError(
            f"--out_dir: {member.folder} was begun with other flags ({member.arg_file}): expected those, "
            f"or another folder; the difference: {', '.join(changed)}"
        )


def _quoted(word: str) -> str:
    """A word as an arg file has it."""
    if not re.search(r"[\s'\"#]", word):
        return word
    return "".join(f'"{part}"' if part != '"' else f"'{part}'" for part in re.split(r'(")', word) if part)


# ---------------------------------------------------------------------- runs


def _is_finished(folder: Path) -> bool:
    """Whether a run has come to its end; one that was interrupted has not."""
    try:
        return not json.loads((folder / RESULT_FILE).read_text(encoding="utf-8")).get("interrupted")
    except (OSError, ValueError):
        return False


def _run(member: Member) -> int:
    """Run a member in a process of its own, or go on with it; returns the exit code."""
    begun = (member.folder / _CHECKPOINT_FILE).is_file()
    words = ("--resume", str(member.folder)) if begun else ("--arg_file", str(member.arg_file))
    where = () if begun else ("--out_dir", str(member.folder))
    wandb_id = member.folder / WANDB_ID_FILE
    if not begun and wandb_id.is_file() and "wandb" in member.flags.get("logger", ()):
        # begun and failed: the same run in W&B, not a twin beside it
        where = (*where, "--wandb_id", wandb_id.read_text(encoding="utf-8").strip())
    process = subprocess.Popen(
        [sys.executable, "-m", "mimickit.cli", "--mode", "train", *words, *where],
        start_new_session=True,  # signals are handed on, each once
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
    )
    try:
        return process.wait()
    except KeyboardInterrupt:
        _end(process)
        raise


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Let a run end as it does on Ctrl-C; one Ctrl-C more, and it gives up its film."""
    process.send_signal(signal.SIGINT)
    while True:
        try:
            process.wait()
            return
        except KeyboardInterrupt:
            for _ in range(2):  # after the second a run says what a third would do
                process.send_signal(signal.SIGINT)
                time.sleep(0.2)


def _write_page(members: list[Member], root: Path) -> Path | None:
    """The page of all runs that have begun; None, with a warning, where it can't be made."""
    try:
        runs = [load_run(member.folder, member.name) for member in members if is_run(member.folder)]
        return write_group_page(runs, root / PAGE_FILE, root.resolve().name) if runs else None
    except VideoError as error:  # all that it shows is there all the same
        LOG.warning("the page of the group: %s", error)
        return None
