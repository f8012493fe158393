"""The defaults of the core's functions, classes and methods, in one table."""

import inspect

import pytest

from lnbook import functional, layers, recurrent, transformer
from lnbook.recurrent.fused import fused_layer
from lnbook.recurrent.loop import plain_layer
from lnbook.recurrent.steps import STEPS
from lnbook.transformer.normalization import make_norm

# Optional arguments that aren't named here default to None.
DEFAULTS = {
    "activation": "relu",
    "affine": True,
    "alpha_init": 0.5,
    "batch_first": False,
    "bias": True,
    "bidirectional": False,
    "dim_feedforward": 2048,
    "dropout": 0.0,
    "elementwise_affine": True,
    "eps": 1e-5,
    "gate": False,
    "implementation": "auto",
    "is_causal": False,
    "layer": 0,
    "layer_norm_eps": 1e-5,
    "momentum": 0.1,
    "need_weights": False,
    "norm": "layer_norm",
    "num_layers": 1,
    "qk_scale": 10.0,
    "reverse": False,
    "track_running_stats": True,
    "training": False,
    "use_input_stats": True,
    "variant": "ba",
    "zero_init": True,
    "zero_query_key": False,
}
TENSORS = dict.fromkeys(("weight", "bias", "running_mean", "running_var"))
PLACEMENTS = ("DeepNormBlock", "PeriLNBlock", "PostLNBlock", "PreLNBlock", "TransformerBlock")
OTHERS = {
    "AdaLayerNorm": {"eps": 1e-6},
    "LayerNorm2d": {"eps": 1e-6},
    "RMSNorm": {"eps": None},
    "RMSNormFunction.apply": {"eps": None},
    "rms_norm": {"eps": None},
    "rms_norm_backward": {"eps": None},
    "fused_layer": {"compiled": True},
    "CausalLanguageModel": {"block": transformer.PreLNBlock},
    **{name: {"dropout": 0.1} for name in PLACEMENTS},
}
METHODS = ("apply", "forward", "cell")


def public():
    """Every callable in the core, keyed by name; a class is listed along with its methods."""
    found = {f.__name__: f for f in (fused_layer, plain_layer, make_norm, *STEPS.values())}
    for package in (functional, layers, recurrent, transformer):
        found |= {name: getattr(package, name) for name in package.__all__}
    del found["BlockOptions"]  # only describes the type of a dictionary
    found = {name: value for name, value in found.items() if callable(value)}
    for name, owner in [*found.items()]:
        if inspect.isclass(owner):
            of_class = {key: getattr(owner, key) for key in METHODS if key in vars(owner)}
            found |= {f"{name}.{key}": method for key, method in of_class.items()}
    return found


@pytest.mark.parametrize(("name", "callable_"), public().items(), ids=public())
def test_the_defaults(name, callable_):
    tensors = TENSORS if inspect.isfunction(callable_) and name != "make_norm" else {}
    tensors = TENSORS if name.endswith(".apply") else tensors
    expected = DEFAULTS | tensors | OTHERS.get(name, {})
    for parameter in inspect.signature(callable_).parameters.values():
        if parameter.default is not inspect.Parameter.empty:
            assert parameter.default == expected.get(parameter.name), parameter
