"""Networks by name."""

import inspect
import re

import torch
from torch import nn

from mimickit.learning.agent_config import Activation, NetSpec
from mimickit.util.keys import ConfigError
from mimickit.util.loading import load_object

_LAYERS: dict[Activation, type[nn.Module]] = {
    Activation.RELU: nn.ReLU,
    Activation.ELU: nn.ELU,
    Activation.SILU: nn.SiLU,
    Activation.TANH: nn.Tanh,
}
_NAME = re.compile(r"fc_(\d+)layers?_(\d+)units?")


def layer_sizes(name: str) -> list[int] | None:
    """The sizes that a name such as fc_3layers_1024units stands for: all layers of m units, the last of half as many.

    So fc_2layers_1024units is the 1024-512 of DeepMimic. None: not a name of this form.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    layers, units = int(match[1]), int(match[2])
    return [units] * (layers - 1) + [max(1, units // 2)] if layers > 1 else [units] * layers


def build_trunk(spec: NetSpec, input_size: int, activation: Activation, source: str) -> tuple[nn.Module, int]:
    """A network without its output layer, and how many features it gives.

    Args:
        spec: fc_{n}layers_{m}units, a list of layer sizes, or ``package.module:function``, a function of the input's
            size that returns a module of (N, input_size) -> (N, any). source: file and key, for errors.

    Raises:
        ConfigError: an unknown name, no layer, a function that isn't there or gives no such module.
    """
    if isinstance(spec, str) and ":" in spec:
        return _from_function(spec, input_size, source)
    sizes = layer_sizes(spec) if isinstance(spec, str) else list(spec)
    if not sizes or min(sizes) < 1:
        raise ConfigError(
            f"{source}: expected fc_{{n}}layers_{{m}}units (e.g. fc_2layers_128units), a list of layer sizes or "
            f"package.module:function, found {spec!r}"
        )
    modules: list[nn.Module] = []
    for inputs, outputs in zip([input_size, *sizes], sizes, strict=False):
        modules += [nn.Linear(inputs, outputs), _LAYERS[activation]()]
    return nn.Sequential(*modules), sizes[-1]


def _from_function(path: str, input_size: int, source: str) -> tuple[nn.Module, int]:
    function = load_object(path, source)
    try:
        inspect.signature(function).bind(input_size)
    except (TypeError, ValueError) as err:
        raise ConfigError(f"{source}: {path!r}: expected a function of the input's size: {err}") from None
    module = function(input_size)
    with torch.no_grad():
        features = module(torch.zeros(1, input_size)) if isinstance(module, nn.Module) else None
    if features is None or features.dim() != 2:
        raise ConfigError(f"{source}: {path!r}: expected a torch module that gives (N, features), found {module!r}")
    return module, int(features.shape[1])
