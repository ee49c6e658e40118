"""What the command line and arg files say, read into one checked value."""

import enum
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mimickit.cli.flags import BLOCKS, COMMAND_LINE, Flag, Given, flags_of, read_value, sort_words
from mimickit.config import Word, find_path, load_yaml, merge, nest, parse_yaml, read_arg_file
from mimickit.factory import CONFIG_FILE, DEFAULT_ENGINE
from mimickit.registry import BUILT_IN, Kind
from mimickit.util.keys import ConfigError, nearest
from mimickit.video.config import VideoConfig

OF_ONE_RUN = ("arg_file", "mode", "out_dir", "model_file", "resume")  # flags that --resume doesn't take over


class Mode(enum.Enum):
    """What a run does."""

    TRAIN = "train"
    TEST = "test"
    VIEW = "view"
    FILM = "film"
    COMPARE = "compare"
    REPLAY = "replay"
    SIM2SIM = "sim2sim"
    GROUP = "group"


class WandbMode(enum.Enum):
    """Whether W&B talks to its server."""

    ONLINE = "online"
    OFFLINE = "offline"
    DISABLED = "disabled"


@dataclass(frozen=True)
class Options:
    """The flags; those of filming are made from VideoConfig."""

    mode: Mode = Mode.TRAIN
    """train a policy, test one, or view an environment without one (for instance a clip); sim2sim: test one on several
    engines; group: train several, one after the other, which differ in their seed or in some flags; without any
    simulation: film a trace again, compare runs in one video or on one page, or make a page (HTML) on which traces
    replay in 3-D."""
    arg_file: tuple[str, ...] = ()
    """Files with more flags; the command line wins over them, a later file over an earlier."""
    engine_config: str = DEFAULT_ENGINE
    """YAML of the physics engine."""
    env_config: str | None = None
    """YAML of the environment; default: the walking humanoid, in view mode its clip."""
    agent_config: str = "data/agents/ppo_cpu_agent.yaml"
    """YAML of the agent."""
    num_envs: int | None = None
    """Environments side by side; default: 512 to train, 32 to test, 1 to view."""
    visualize: bool = False
    """Open a window. No engine has one yet, so true is refused: film with --video true instead."""
    out_dir: Path | None = None
    """Run folder; default: a new one, output/MODE_ENV_TIME. Clips and logs already there are kept."""
    logger: tuple[str, ...] = ("txt",)
    """txt, tb, wandb or your own as package.module:Class, one or several; log.txt and log.jsonl are always written."""
    callbacks: tuple[str, ...] = ()
    """Callbacks, each followed by its options as key=value: picked_clips, motion_clips, error_plots, early_stop,
    best_model or your own as package.module:Class; default: what the agent file lists under callbacks."""
    model_file: str | None = None
    """Model to test or to begin training from; default of a test that names no env or agent: the shipped
    walk."""
    max_samples: int | None = None
    """Training ends after so many samples; default: never, stop it with Ctrl-C."""
    test_episodes: int | None = None
    """Episodes of a test, rounded up to as many in every environment, inf for no end; default: 32 (view: 1), in
    training what the agent file says."""
    save_int_models: bool = False
    """Keep a model file of every test during training, not only the last."""
    rand_seed: int = 0
    """Seed of everything random; the same seed gives the same run."""
    devices: tuple[str, ...] = ("cpu",)
    """Device that computes: cpu or cuda:N; several are not supported yet."""
    master_port: int | None = None
    """Port for several processes; without effect on one device."""
    resume: str | None = None
    """Go on with the training in this run folder (or from a checkpoint file), with the flags it had."""
    trace: tuple[str, ...] = ()
    """film, replay: the trace, which lies beside its clip; a run folder stands for its newest."""
    runs: tuple[str, ...] = ()
    """compare: run folders, traces or clips, two or more; with --page the folders of runs, or of groups of runs."""
    labels: tuple[str, ...] = ()
    """compare, replay: what the runs are called in the picture; default: the names of their folders or files."""
    engines: tuple[str, ...] = ()
    """sim2sim: the engines, for instance mujoco,newton; or engine files (YAML)."""
    page: Path | None = None
    """compare: instead of a video a page (HTML) at this path: films in step, curves, figures and settings."""
    seeds: tuple[str, ...] = ()
    """group: the seeds, for instance 0,1,2; default: --rand_seed alone."""
    variants: tuple[str, ...] = ()
    """group: arg files, each with the flags of one variant, which is called as the file; every one runs with every
    seed."""
    run_name: str | None = None
    """Name of the run in W&B; default: the run folder's name."""
    wandb_project: str = "mimickit"
    """W&B project."""
    wandb_group: str | None = None
    """W&B group: runs of a group are shown side by side."""
    wandb_tags: tuple[str, ...] = ()
    """W&B tags."""
    wandb_mode: WandbMode | None = None
    """Default: WANDB_MODE, else online where W&B knows an account, else offline."""
    wandb_model: bool = False
    """Upload the trained model as an artifact of the W&B run."""
    wandb_id: str | None = None
    """Id of a W&B run to go on with; --resume finds it by itself."""


@dataclass(frozen=True)
class Request:
    """Everything that was asked for."""

    options: Options
    video: Mapping[str, Given]  # fields of VideoConfig that were given, their words not yet read
    overrides: Mapping[str, Mapping[str, Any]]  # keys of YAML files: {"env": {"episode_length": 5}}
    given: Mapping[str, Given]  # every flag that was given

    def place(self, flag: str) -> str:
        """A flag as errors name it: where it was given, and its name."""
        return f"{self.given[flag].source}: --{flag}" if flag in self.given else f"--{flag}"


VIDEO_FLAG = Flag("video", bool, False, "Film the environment in TEST mode; in view mode true by default.")
SIZE_FLAG = Flag("video_size", str, None, "Width and height at once, for instance 1280x720.")

TRAINING_ONLY = ("max_samples", "save_int_models", "video_final", "video_train_every")
WITHOUT_SIMULATION = (Mode.FILM, Mode.COMPARE, Mode.REPLAY)
TAKEN_WITHOUT = ("mode", "arg_file", "out_dir", "trace", "runs", "labels", "page", "engine_config")  # and how to film
NO_PICTURE = (  # of the video flags
    "trace", "replay", "defer", "every", "final", "train_every", "keep_last", "keep_best", "strict",
)  # fmt: skip
ONLY_IN = {
    "trace": (Mode.FILM, Mode.REPLAY), "runs": (Mode.COMPARE,), "labels": (Mode.COMPARE, Mode.REPLAY),
    "engines": (Mode.SIM2SIM,), "page": (Mode.COMPARE,), "seeds": (Mode.GROUP,), "variants": (Mode.GROUP,),
}  # fmt: skip

# lowest and highest value of a number
LIMITS = {
    "num_envs": (1, 2**20),
    "max_samples": (1, sys.maxsize),
    "test_episodes": (1, sys.maxsize),
    "rand_seed": (0, 2**32 - 1),
    "master_port": (1, 65535),
}


def all_flags() -> dict[str, Flag]:
    """Every flag by name, in the order of the help."""
    video = flags_of(VideoConfig, prefix="video_", leave_out=("enabled", "out_dir"))
    return {flag.name: flag for flag in (*flags_of(Options), VIDEO_FLAG, SIZE_FLAG, *video)}


def read_request(argv: Sequence[str]) -> Request:
    """Read argv and the arg files that it names.

    Raises:
        ConfigError: what can't be read, or can't be wanted together; with the flag and its place.
    """
    flags = all_flags()
    typed = sort_words([Word(text, COMMAND_LINE) for text in argv], flags)
    given: dict[str, Given] = {}
    for path in typed["arg_file"].words if "arg_file" in typed else ():
        from_file = sort_words(read_arg_file(path), flags)
        if "arg_file" in from_file:
            raise ConfigError(f"{from_file['arg_file'].source}: --arg_file: an arg file can't name another")
        given |= from_file
    given |= typed
    request = make_request(given)
    if request.options.resume is not None:
        request = make_request(_flags_of_run(request.options.resume, flags) | given)
    return request


def make_request(given: Mapping[str, Given]) -> Request:
    """A request from the flags that were given. Raises ConfigError, as read_request."""
    options = Options(**{f.name: read_value(f, given[f.name]) for f in flags_of(Options) if f.name in given})
    request = Request(options, _video(given), _overrides(given), given)
    _check(request)
    return request


def run_folder_of(path: Path) -> Path:
    """The run folder that a file in it, or it itself, stands for."""
    return path if path.is_dir() else path.parent


def _flags_of_run(path: str, flags: Mapping[str, Flag]) -> dict[str, Given]:
    """The flags that a run was begun with, from its config.yaml; none if it isn't there."""
    file = run_folder_of(find_path(path, "--resume")) / CONFIG_FILE
    found = load_yaml(file).get("flags", {}) if file.is_file() else {}
    if not isinstance(found, Mapping):
        raise ConfigError(f"{file}: flags: expected a block of flags, found {found!r}")
    return {
        name: Given(tuple(str(word) for word in words), str(file))
        for name, words in found.items()
        if name in flags and name not in OF_ONE_RUN
    }


def _video(given: Mapping[str, Given]) -> dict[str, Given]:
    names = {"video": "enabled"} | {name: name.removeprefix("video_") for name in given if name.startswith("video_")}
    found = {names[name]: words for name, words in given.items() if name in names}
    size = found.pop("size", None)
    if size is None:
        return found
    for name in ("width", "height"):
        if name in found:
            raise ConfigError(
                f"{size.source}: --video_size and --video_{name} ({found[name].source}): give one of them"
            )
    width, _, height = size.words[0].lower().partition("x")
    if not (width.isdecimal() and height.isdecimal()):
        raise ConfigError(f"{size.source}: --video_size: expected WIDTHxHEIGHT, found {size.words[0]!r}")
    return found | {"width": Given((width,), size.source), "height": Given((height,), size.source)}


def _overrides(given: Mapping[str, Given]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {block: {} for block in BLOCKS}
    for name, words in given.items():
        block, dot, rest = name.partition(".")
        if dot:
            values = [parse_yaml(word, f"{words.source}: --{name}") for word in words.words]
            value = values[0] if len(values) == 1 else values
            found[block] = merge(found[block], nest(rest.split("."), value))
    return found


def _check(request: Request) -> None:
    """Refuse numbers out of range, and flags that can't be wanted together."""
    options, given = request.options, request.given
    for name, (low, high) in LIMITS.items():
        value = getattr(options, name)
        if value is not None and not low <= value <= high:
            raise ConfigError(f"{given[name].source}: --{name}: expected {low} to {high}, found {value}")
    for name in options.logger:
        if name not in BUILT_IN[Kind.LOGGER] and ":" not in name:
            known = nearest(name, BUILT_IN[Kind.LOGGER])
            raise ConfigError(
                f"{given['logger'].source}: --logger: found {name!r}{known} (your own: package.module:Class)"
            )
    if options.visualize:
        raise ConfigError(
            f"{given['visualize'].source}: --visualize true: no engine opens a window here; film with "
            "--video true instead (--visualize false on the command line wins over an arg file)"
        )
    if len(options.devices) > 1:
        raise ConfigError(
            f"{given['devices'].source}: --devices: several devices are not supported yet: expected one, "
            f"found {' '.join(options.devices)}"
        )
    if options.resume is not None and options.mode is not Mode.TRAIN:
        raise ConfigError(f"{given['resume'].source}: --resume: expected --mode train, found {options.mode.value}")
    if options.resume is not None and options.model_file is not None:
        raise ConfigError(
            f"{given['resume'].source}: --resume and --model_file ({given['model_file'].source}) both say "
            "where training begins; give one of them"
        )
    _check_effects(request)


def _check_effects(request: Request) -> None:
    """Refuse flags that would change nothing."""
    options, given = request.options, request.given
    for name, modes in ONLY_IN.items():
        if name in given and options.mode not in modes:
            raise ConfigError(f"{request.place(name)} has no effect in --mode {options.mode.value}")
    if options.mode in WITHOUT_SIMULATION:
        for name, words in given.items():
            is_picture = name.startswith("video_") and name.removeprefix("video_") not in NO_PICTURE
            is_taken = name in TAKEN_WITHOUT or (is_picture and options.mode is not Mode.REPLAY)
            if words.on_command_line and not is_taken:
                raise ConfigError(f"{request.place(name)} has no effect in --mode {options.mode.value}")
    for name, words in given.items():
        # in an arg file, which may serve many runs, such a flag is no mistake
        if name.startswith("wandb_") and words.on_command_line and "wandb" not in options.logger:
            raise ConfigError(f"{words.source}: --{name} has no effect without --logger wandb")
        trains = options.mode in (Mode.TRAIN, Mode.GROUP)
        if name in TRAINING_ONLY and words.on_command_line and not trains:
            raise ConfigError(f"{words.source}: --{name} has no effect in --mode {options.mode.value}")
