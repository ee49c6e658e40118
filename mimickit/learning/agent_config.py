"""The keys of an agent's YAML as dataclasses: types, ranges, defaults and a line of doc each."""

import enum
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Self, TypeVar

from mimickit.util.keys import ConfigError, as_bool, as_float, as_int, nearest, reject_unknown

_T = TypeVar("_T")
NetSpec = str | list[int]  # a name such as fc_2layers_128units, package.module:function, or the layers' sizes


class StdType(enum.Enum):
    """Where the standard deviation of the policy's Gaussian comes from."""

    FIXED = "FIXED"  # action_std, which may be annealed
    CONSTANT = "CONSTANT"  # one learnt value per action, begun at action_std
    VARIABLE = "VARIABLE"  # an output of the policy network, begun at action_std


class Activation(enum.Enum):
    """What stands between a network's layers."""

    RELU = "relu"
    ELU = "elu"
    SILU = "silu"
    TANH = "tanh"


class OptimizerType(enum.Enum):
    """Which optimiser moves a network."""

    ADAM = "Adam"
    ADAMW = "AdamW"
    SGD = "SGD"  # with momentum 0.9


def ranged(default: Any, low: float | None = None, high: float | None = None) -> Any:
    """A field with a default and the lowest and highest value that is accepted."""
    return field(default=default, metadata={"low": low, "high": high})


@dataclass(frozen=True)
class OptimizerConfig:
    """One network's optimiser."""

    type: OptimizerType = OptimizerType.ADAM
    """Adam, AdamW or SGD (momentum 0.9)."""
    learning_rate: float = ranged(1e-4, 0.0)
    """Step size."""
    weight_decay: float = ranged(0.0, 0.0)
    """L2 penalty on the weights (AdamW: decoupled)."""
    grad_clip: float | None = ranged(None, 0.0)
    """Greatest norm of the whole gradient; none or 0: not clipped."""


@dataclass(frozen=True)
class ModelConfig:
    """The networks."""

    actor_net: NetSpec = "fc_2layers_1024units"
    """Policy: fc_{n}layers_{m}units, package.module:function, or a list of layer sizes."""
    critic_net: NetSpec = "fc_2layers_1024units"
    """Value function, likewise."""
    activation: Activation = Activation.RELU
    """relu, elu, silu or tanh."""
    actor_init_output_scale: float = ranged(0.01, 0.0)
    """The policy's last layer begins with weights uniform in +- this."""
    actor_std_type: StdType = StdType.FIXED
    """FIXED, CONSTANT or VARIABLE."""
    action_std: float = ranged(0.05, 1e-6)
    """Standard deviation of the noise on actions, in units of half the action's range."""
    action_std_final: float | None = ranged(None, 1e-6)
    """FIXED only: what action_std is annealed to, linearly; none: it stays."""
    action_std_anneal_samples: float = ranged(4e6, 1.0)
    """Samples after which action_std_final is reached."""


@dataclass(frozen=True)
class AgentConfig:
    """What every agent has; subclasses add what their algorithm needs."""

    agent_name: str = "PPO"
    """The agent; a name of the registry or package.module:Class."""
    model: ModelConfig = field(default_factory=ModelConfig)
    """Networks."""
    discount: float = ranged(0.99, 0.0, 1.0)
    """gamma: worth of a reward one step later."""
    steps_per_iter: int = ranged(32, 1)
    """Steps of every environment per iteration."""
    iters_per_output: int = ranged(100, 1)
    """Iterations from one test and checkpoint to the next."""
    test_episodes: int = ranged(32, 0)
    """Episodes of a test during training, rounded up so that every environment plays equally many; 0: no tests."""
    normalizer_samples: int = ranged(100_000_000, 0)
    """Samples after which the observations' mean and deviation stay as they are."""
    obs_clip: float = ranged(10.0, 0.1)
    """Normalised observations are clipped to +- this."""

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any], source: str) -> Self:
        """Read YAML values.

        Raises:
            ConfigError: an unknown key (with the nearest known one), a value of another type or out of range.
        """
        return read_config(cls, values, source)


def read_config(cls: type[_T], values: Any, source: str, path: str = "") -> _T:
    """An instance of the dataclass cls from YAML values; path is the key of the block, for errors."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"{source}: {path.rstrip('.') or 'agent'}: expected a block of keys, found {values!r}")
    known = [item.name for item in fields(cls)]  # type: ignore[arg-type]
    reject_unknown(values, known, f"{source}: {path.rstrip('.')}" if path else source)
    hints = typing.get_type_hints(cls)
    read: dict[str, Any] = {}
    for item in fields(cls):  # type: ignore[arg-type]
        if item.name not in values:
            continue
        name, value = path + item.name, values[item.name]
        read[item.name] = _read_value(hints[item.name], value, name, source)
        _check_range(read[item.name], item.metadata, name, source)
    return cls(**_with_block_defaults(cls, read, values, source, path))


def _with_block_defaults(
    cls: type[Any], read: dict[str, Any], values: Mapping[str, Any], source: str, path: str
) -> dict[str, Any]:
    """A block that is given in part keeps the default of its owner, not of its class, for the other keys."""
    for item in fields(cls):
        owner = item.default_factory() if callable(item.default_factory) else None
        if item.name in values and is_dataclass(owner) and not isinstance(owner, type):
            default = {part.name: getattr(owner, part.name) for part in fields(owner)}
            block = values[item.name]
            given = {key: getattr(read[item.name], key) for key in block}
            read[item.name] = type(owner)(**{**default, **given})
    return read


_READERS: dict[Any, Callable[[Any, str, str], Any]] = {bool: as_bool, int: as_int, float: as_float}


def _read_value(hint: Any, value: Any, name: str, source: str) -> Any:
    if hint == NetSpec:
        return _read_net(value, name, source)
    if isinstance(hint, types.UnionType):  # X | None
        if value is None or str(value).lower() == "none":
            return None
        hint = next(kind for kind in typing.get_args(hint) if kind is not types.NoneType)
    if is_dataclass(hint):
        return read_config(typing.cast(type[Any], hint), value, source, f"{name}.")
    if hint in _READERS:
        return _READERS[hint](value, name, source)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        members = {str(member.value).lower(): member for member in hint}
        if str(value).lower() not in members:
            known = [str(member.value) for member in hint]
            raise ConfigError(f"{source}: {name}: found {value!r}{nearest(str(value), known)}")
        return members[str(value).lower()]
    if not isinstance(value, str):
        raise ConfigError(f"{source}: {name}: expected a name, found {value!r}")
    return value


def _read_net(value: Any, name: str, source: str) -> NetSpec:
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise ConfigError(f"{source}: {name}: expected a network's name or a list of layer sizes, found {value!r}")
    return [as_int(size, name, source) for size in value]


def _check_range(value: Any, metadata: Mapping[str, Any], name: str, source: str) -> None:
    low, high = metadata.get("low"), metadata.get("high")
    if value is None or (low is None and high is None):
        return
    if (low is not None and value < low) or (high is not None and value > high):
        wanted = f"{low:g} to {high:g}" if low is not None and high is not None else f"at least {low:g}"
        raise ConfigError(f"{source}: {name}: expected {wanted}, found {value:g}")


def plain(config: Any) -> Any:
    """A configuration as plain values: dicts, lists, numbers and names, as YAML would hold them."""
    if is_dataclass(config) and not isinstance(config, type):
        return {item.name: plain(getattr(config, item.name)) for item in fields(config)}
    return config.value if isinstance(config, enum.Enum) else config
