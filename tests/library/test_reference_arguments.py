"""The arguments of every function in the reference: defaults, lists, missing arguments."""

import inspect

import numpy as np
import pytest

from lnbook import reference
from lnbook.reference.lstm import STEPS

FUNCTIONS = {name: getattr(reference, name) for name in reference.__all__}
FUNCTIONS = {name: f for name, f in FUNCTIONS.items() if inspect.isfunction(f)}
DEFAULTS = {"eps": 1e-5, "momentum": 0.1, "training": False}
MISSING = {"weight": 1.0, "bias": 0.0, "running_mean": 0.0, "running_var": 1.0}

# Integers, so that lists and arrays hold the same numbers; two channels of three positions each.
BATCH = np.array([[[1, 2, 6], [3, -4, 0]], [[5, 1, 2], [7, 7, -2]]])
UPSTREAM = np.array([[[2, 0, -1], [1, 1, 3]], [[0, 4, 2], [-3, 1, 1]]])
GAIN, SHIFT = np.array([2, -3]), np.array([1, 4])
ROW, ROW_GAIN = np.array([1, 2, 6]), np.array([2, -1, 3])
WITH_CHANNELS = {
    "batch_norm": (BATCH, SHIFT, np.array([2, 5])),
    "batch_norm_backward": (UPSTREAM, BATCH),
    "batch_norm_forward": (BATCH,),
    "group_norm": (BATCH, 2),
    "instance_norm": (BATCH,),
}
WITH_ROWS = {
    "layer_norm": (BATCH, 3),
    "layer_norm_backward": (UPSTREAM, BATCH, 3),
    "layer_norm_forward": (BATCH, 3),
    "layer_norm_jacobian": (ROW,),
    "rms_norm": (BATCH, 3),
    "rms_norm_backward": (UPSTREAM, BATCH, 3),
}
CALLS = WITH_CHANNELS | WITH_ROWS


def parameters(name):
    """A function's optional array arguments, with random values, keyed by name."""
    known = inspect.signature(FUNCTIONS[name]).parameters
    rng, size = np.random.default_rng(0), (2,) if name in WITH_CHANNELS else (3,)
    optional = [key for key in MISSING if key in known and known[key].default is None]
    return {key: rng.integers(1, 5, size) for key in optional}


def same(left, right):
    results = zip(*(r if isinstance(r, tuple) else (r,) for r in (left, right)), strict=True)
    for ours, expected in results:
        assert ours.dtype == np.float64
        np.testing.assert_allclose(ours, expected, rtol=1e-13, atol=1e-13)


def as_lists(arguments):
    return [a.tolist() if isinstance(a, np.ndarray) else a for a in arguments]


def test_every_function_is_called_here():
    assert CALLS.keys() == FUNCTIONS.keys()


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), *STEPS.values()])
def test_the_defaults(function):
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            default = None if "rms" in function.__name__ else DEFAULTS.get(name)
            assert parameter.default == default, name


@pytest.mark.parametrize("name", CALLS)
def test_lists_of_integers_do_as_arrays_do(name):
    arguments = CALLS[name]
    floats = [a.astype(float) if isinstance(a, np.ndarray) else a for a in arguments]
    more = parameters(name)
    expected = FUNCTIONS[name](*floats, **{key: a.astype(float) for key, a in more.items()})
    lists = {key: array.tolist() for key, array in more.items()}
    same(FUNCTIONS[name](*as_lists(arguments), **lists), expected)


@pytest.mark.parametrize("name", CALLS)
def test_what_is_missing_is_ones_or_zeros(name):
    arguments = CALLS[name]
    given = {key: np.full(a.shape, MISSING[key]) for key, a in parameters(name).items()}
    same(FUNCTIONS[name](*arguments), FUNCTIONS[name](*arguments, **given))


@pytest.mark.parametrize("shape", [(3, 0), (1, 2), (0, 4, 2)])
def test_channels_with_too_few_values_are_refused(shape):
    with pytest.raises(ValueError, match="batch_norm_forward: expected more than one value"):
        reference.batch_norm_forward(np.ones(shape))


def test_the_running_variance_of_a_lone_channel_is_unbiased():
    result = reference.batch_norm_forward([[1.0], [2.0], [6.0]], momentum=1.0)
    np.testing.assert_allclose(result.running_var, [7.0])  # (4 + 1 + 9) / 2
    np.testing.assert_allclose(result.running_mean, [3.0])


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_the_parameters_of_a_step_may_be_lists(step):
    rng = np.random.default_rng(1)
    shapes = {"weight_ih": (8, 3), "weight_hh": (8, 2), "norm_c_weight": (2,), "norm_c_bias": (2,)}
    kinds = ("bias_ih", "bias_hh", "bias_gates", "norm_gates_weight", "norm_gates_bias")
    kinds += ("norm_ih_weight", "norm_ih_bias", "norm_hh_weight", "norm_hh_bias")
    shapes |= dict.fromkeys(kinds, (8,))
    all_of_them = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    state = rng.standard_normal((2, 4, 2))
    x = rng.standard_normal((4, 3))
    lists = {name: array.tolist() for name, array in all_of_them.items()}
    same(step(x.tolist(), *state.tolist(), lists), step(x, *state, all_of_them))
