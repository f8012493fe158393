"""LayerNorm, checked against torch.nn.LayerNorm: numbers, state dicts, printing, errors."""

import inspect
import math

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.layers import LayerNorm
from lnbook.layers import layer_norm as module
from tests.helpers.random_tensors import random_input, randomized

OPTIONS = [{}, {"bias": False}, {"elementwise_affine": False}]
IMPLEMENTATIONS = ["auto", "native", "fused", "plain"]
SHAPES = [((6,), (4, 6)), ((3, 6), (4, 3, 6)), ((2, 3, 6), (4, 2, 3, 6)), ((6,), (2, 3, 4, 6))]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("normalized_shape", "shape"), SHAPES)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 5e-6)])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_outputs_and_gradients_equal_pytorch(
    options, normalized_shape, shape, dtype, tolerance, implementation
):
    ours = randomized(
        LayerNorm(normalized_shape, 0.01, dtype=dtype, implementation=implementation, **options)
    )
    theirs = nn.LayerNorm(normalized_shape, 0.01, dtype=dtype, **options)
    theirs.load_state_dict(ours.state_dict())
    upstream = random_input(shape, dtype, seed=2)
    results = []
    for layer in (ours, theirs):
        x = random_input(shape, dtype).requires_grad_()
        y = layer(x)
        results.append([y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], upstream)])
    for tensor, expected in zip(*results, strict=True):
        torch.testing.assert_close(tensor, expected, rtol=tolerance, atol=tolerance)
        assert implementation not in ("auto", "native") or torch.equal(
            tensor, expected
        )  # the same kernel gives the same bits


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("normalized_shape", [4, (4,), [2, 3], torch.Size([2, 3]), range(2, 5)])
def test_construction_is_that_of_pytorch(options, normalized_shape):
    ours, theirs = LayerNorm(normalized_shape, **options), nn.LayerNorm(normalized_shape, **options)
    assert repr(ours) == repr(theirs)
    assert ours.normalized_shape == theirs.normalized_shape
    assert (ours.eps, ours.elementwise_affine) == (theirs.eps, theirs.elementwise_affine)
    for name in ("weight", "bias"):
        mine, expected = getattr(ours, name), getattr(theirs, name)
        assert (mine is None) == (expected is None)
        assert mine is None or torch.equal(mine, expected)
    assert not list(ours.buffers())


def test_argument_names_and_defaults_are_those_of_pytorch():
    def arguments(layer):
        return [(p.name, p.default) for p in inspect.signature(layer).parameters.values()]

    assert arguments(LayerNorm) == [*arguments(nn.LayerNorm), ("implementation", "auto")]
    assert (
        inspect.signature(LayerNorm).parameters["implementation"].kind
        is inspect.Parameter.KEYWORD_ONLY
    )


@pytest.mark.parametrize(
    "normalized_shape", [np.int64(4), [np.int64(4)], torch.tensor([4]), iter([4])]
)
def test_sizes_become_python_integers(normalized_shape):
    layer = LayerNorm(normalized_shape)
    assert layer.normalized_shape == (4,)
    assert type(layer.normalized_shape[0]) is int
    assert layer(random_input((3, 4))).shape == (3, 4)


def test_a_size_of_zero_is_accepted_as_in_pytorch():
    for layer in (LayerNorm(0), nn.LayerNorm(0)):
        assert layer(torch.ones(2, 0)).shape == (2, 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_half_inputs_with_full_parameters(dtype, implementation):
    layer = randomized(LayerNorm(32, implementation=implementation))
    x = random_input((8, 32), dtype)
    y = layer(x)
    exact = nn.functional.layer_norm(
        x.double(), (32,), layer.weight.double(), layer.bias.double()
    ).detach()
    assert y.dtype == dtype
    unit = torch.finfo(dtype).eps
    assert bool(((y.detach() - exact).abs() <= 0.5 * unit * exact.abs() + 4e-6).all())


def test_reset_parameters_keeps_the_parameters_themselves():
    for options in OPTIONS:
        layer = randomized(LayerNorm((2, 3), **options))
        before = list(layer.parameters())
        layer.reset_parameters()
        assert all(old is new for old, new in zip(before, layer.parameters(), strict=True))
        for name, parameter in layer.named_parameters():
            assert torch.equal(parameter, torch.full((2, 3), 1.0 if name == "weight" else 0.0))
            assert parameter.requires_grad


def test_training_and_evaluation_do_not_differ():
    layer, x = randomized(LayerNorm(4)), random_input((5, 4))
    trained = layer.train()(x)
    assert torch.equal(layer.eval()(x), trained)
    assert torch.equal(layer.eval()(x[2]), trained[2])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_implementations_run_what_they_name(implementation, monkeypatch):
    called = []
    for name in ("native", "layer_norm"):
        monkeypatch.setattr(module, name, lambda *given, name=name: called.append(name))
    monkeypatch.setattr(module.LayerNormFunction, "apply", lambda *given: called.append("fused"))
    LayerNorm(4, implementation=implementation)(random_input((3, 4)))
    expected = {"auto": "native", "plain": "layer_norm"}.get(implementation, implementation)
    assert called == [expected]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_constant_rows_in_half_precision(dtype):
    x = torch.tensor([0.0, 0.1, 7.7, -54321.9]).to(dtype)[:, None].repeat(1, 33)
    for implementation in ("fused", "plain"):
        layer = randomized(LayerNorm(33, dtype=dtype, implementation=implementation))
        assert torch.equal(layer(x), layer.bias.expand(4, 33))
    # Here, PyTorch's kernel subtracts two large numbers, so only our documented bound holds.
    left = LayerNorm(33, bias=False, dtype=dtype)(x).detach()
    assert bool((left.abs() <= 2**-23 * x.double().abs() / math.sqrt(1e-5)).all())


@pytest.mark.parametrize(("implementation", "digits"), [("native", 3), ("fused", 6), ("plain", 6)])
def test_digits_of_rows_with_a_large_mean(implementation, digits):
    x = (random_input((64, 768), torch.float64) / 2.0 + 1e4).float()
    exact = nn.functional.layer_norm(x.double(), (768,))
    error = (
        LayerNorm(768, elementwise_affine=False, implementation=implementation)(x) - exact
    ).norm() / exact.norm()
    assert float(error) < 10.0**-digits


def test_gradients_reach_every_parameter_through_a_stack():
    stack = nn.Sequential(nn.Linear(4, 6), LayerNorm(6), nn.Linear(6, 2), LayerNorm(2))
    stack(random_input((5, 4))).square().sum().backward()
    assert all(parameter.grad is not None for parameter in stack.parameters())


BAD_ARGUMENTS = [
    (
        {"normalized_shape": 4.0},
        TypeError,
        "an integer or a sequence of integers, but got 4.0 .* float",
    ),
    (
        {"normalized_shape": "4"},
        TypeError,
        "an integer or a sequence of integers, but got '4' .* str",
    ),
    ({"normalized_shape": None}, TypeError, "an integer or a sequence of integers, but got None"),
    ({"normalized_shape": True}, TypeError, "to contain integers, but got True of type bool"),
    ({"normalized_shape": (2, 4.0)}, TypeError, "to contain integers, but got 4.0 of type float"),
    ({"normalized_shape": ["a"]}, TypeError, "to contain integers, but got 'a' of type str"),
    ({"normalized_shape": -1}, RuntimeError, r"no negative sizes, but got .*\(-1,\)"),
    ({"normalized_shape": (4, -1)}, RuntimeError, r"no negative sizes, but got .*\(4, -1\)"),
    ({"dtype": torch.int64}, RuntimeError, "dtype to be float16, .* but got torch.int64"),
    ({"dtype": "float32"}, TypeError, "a torch.dtype, but got 'float32' of type str"),
]


@pytest.mark.parametrize(("arguments", "error", "message"), BAD_ARGUMENTS)
def test_bad_arguments_are_refused_at_construction(arguments, error, message):
    arguments = {"normalized_shape": 4, **arguments}
    with pytest.raises(error, match=message):
        LayerNorm(**arguments)
    with pytest.raises(error):
        nn.LayerNorm(**arguments)


def test_the_implementation_is_printed_unless_it_is_the_default():
    assert repr(LayerNorm(4, implementation="fused")).endswith("bias=True, implementation='fused')")
