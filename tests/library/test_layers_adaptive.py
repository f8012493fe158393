"""AdaLayerNorm: numbers, gradients, condition shapes, dtypes, initialization."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.layers import AdaLayerNorm
from tests.helpers.random_tensors import random_input, random_tensor, randomized

DOUBLE = {"dtype": torch.float64}
# Normalized shape, input shape, condition shape, axes to insert into shift, scale and gate.
SHAPES = [
    ((6,), (4, 6), (4, 3), ()),
    ((6,), (4, 5, 6), (4, 3), (1,)),
    ((6,), (4, 5, 6), (4, 5, 3), ()),
    ((6,), (4, 5, 6), (4, 1, 3), ()),
    ((6,), (4, 5, 6), (1, 5, 3), ()),
    ((6,), (4, 5, 6), (3,), (0, 0)),
    ((6,), (6,), (3,), ()),
    ((6,), (4, 2, 5, 6), (4, 3), (1, 1)),
    ((2, 6), (4, 5, 2, 6), (4, 3), (1,)),
]


def expected(layer, x, c, axes):
    """The formula in NumPy: normalize the rows, and multiply a matrix by the condition."""
    shape = layer.normalized_shape
    over = tuple(range(-len(shape), 0))
    weight = layer.modulation.weight.detach().numpy()
    bias = 0.0 if layer.modulation.bias is None else layer.modulation.bias.detach().numpy()
    outputs = c.numpy() @ weight.T + bias
    parts = np.split(outputs, 3 if layer.gate else 2, axis=-1)
    parts = [part.reshape(*c.shape[:-1], *shape) for part in parts]
    for axis in axes:
        parts = [np.expand_dims(part, axis) for part in parts]
    x = x.numpy()
    mean, variance = x.mean(over, keepdims=True), x.var(over, keepdims=True)
    shift, scale, *gate = parts
    y = (x - mean) / np.sqrt(variance + layer.eps) * (1 + scale) + shift
    return (y, *gate)


def both(result):
    return result if isinstance(result, tuple) else (result,)


@pytest.mark.parametrize("options", [{}, {"gate": True}, {"bias": False}, {"eps": 0.3}])
@pytest.mark.parametrize(("normalized_shape", "of_input", "of_condition", "axes"), SHAPES)
def test_ada_layer_norm_is_its_formula(options, normalized_shape, of_input, of_condition, axes):
    layer = randomized(AdaLayerNorm(normalized_shape, 3, **options, **DOUBLE))
    x, c = random_input(of_input, torch.float64), random_tensor(*of_condition, seed=2)
    found = both(layer(x, c))
    for tensor, array in zip(found, expected(layer, x, c, axes), strict=True):
        np.testing.assert_allclose(tensor.detach().numpy(), array, rtol=1e-12, atol=1e-12)
    assert found[0].shape == x.shape
    for gate in found[1:]:
        torch.broadcast_to(gate, x.shape)
        assert gate.ndim == x.ndim


def test_gradients_are_those_of_the_code_of_dit():
    """Uses random upstream gradients, for both norms of a block and their six chunks."""
    linear = randomized(nn.Linear(5, 6 * 4, **DOUBLE))
    layers = [AdaLayerNorm(4, 5, gate=True, **DOUBLE) for _ in range(2)]
    for number, layer in enumerate(layers):
        state = {k: t.chunk(2)[number] for k, t in linear.state_dict().items()}
        layer.modulation.load_state_dict(state)
    x = random_input((3, 7, 4), torch.float64).requires_grad_()
    c = random_tensor(3, 5, seed=2).requires_grad_()
    norm = nn.LayerNorm(4, 1e-6, elementwise_affine=False)
    chunks = linear(c).chunk(6, dim=1)
    for number, layer in enumerate(layers):
        shift, scale, gate = (chunk.unsqueeze(1) for chunk in chunks[3 * number :][:3])
        theirs = gate * (norm(x) * (1 + scale) + shift).sin()
        y, own_gate = layer(x, c)
        ours = own_gate * y.sin()
        upstream = random_tensor(3, 7, 4, seed=3)
        torch.testing.assert_close(ours, theirs)
        found = torch.autograd.grad(ours, [x, c, layer.modulation.weight], upstream)
        wanted = torch.autograd.grad(theirs, [x, c, linear.weight], upstream, retain_graph=True)
        torch.testing.assert_close(found[0], wanted[0])
        torch.testing.assert_close(found[1], wanted[1])
        torch.testing.assert_close(found[2], wanted[2].chunk(2)[number])


def test_at_the_start_it_is_a_norm_without_parameters_and_a_closed_gate():
    layer, x, c = AdaLayerNorm(4, 3, gate=True), random_input((2, 5, 4)), random_input((2, 3))
    y, gate = layer(x, c)
    assert torch.equal(y, nn.LayerNorm(4, 1e-6, elementwise_affine=False)(x))
    assert torch.equal(gate, torch.zeros(2, 1, 4))
    assert [*layer.state_dict()] == ["modulation.weight", "modulation.bias"]
    assert [*AdaLayerNorm(4, 3, bias=False).state_dict()] == ["modulation.weight"]


@pytest.mark.parametrize("zero_init", [True, False])
def test_reset_gives_the_start_again(zero_init):
    torch.manual_seed(0)
    theirs = nn.Linear(3, 8)
    layer = randomized(AdaLayerNorm(4, 3, zero_init=zero_init))
    torch.manual_seed(0)
    layer.reset_parameters()
    for name, tensor in theirs.state_dict().items():
        wanted = torch.zeros_like(tensor) if zero_init else tensor
        assert torch.equal(layer.modulation.state_dict()[name], wanted)


def test_a_condition_per_sequence_never_goes_to_tokens():
    """With as many tokens as sequences, `x * scale` would broadcast the wrong way."""
    layer = randomized(AdaLayerNorm(3, 2, **DOUBLE))
    x, c = random_input((4, 4, 3), torch.float64), random_tensor(4, 2, seed=2)
    y = layer(x, c)
    for row in range(4):
        torch.testing.assert_close(y[row], layer(x[row], c[row]))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_once(dtype):
    layer = randomized(AdaLayerNorm(32, 3, gate=True))
    x, c = random_input((8, 32), dtype), random_input((8, 3), dtype, seed=2)
    exact = randomized(AdaLayerNorm(32, 3, gate=True, **DOUBLE))
    exact.load_state_dict(layer.state_dict())
    wanted = exact(x.double(), c.double())
    for tensor, other in zip(layer(x, c), wanted, strict=True):
        assert tensor.dtype == dtype
        error = (tensor.double() - other).abs()
        assert bool((error <= 0.5 * torch.finfo(dtype).eps * other.abs() + 1e-5).all())


def test_small_scales_are_not_lost_in_bfloat16():
    layer = AdaLayerNorm(2, 1, dtype=torch.bfloat16)
    layer.modulation.weight.data[2:] = 2.0**-8  # 1 + 2**-8 is 1 in bfloat16
    x, c = torch.tensor([[-1.0, 1.0]]).bfloat16(), torch.ones(1, 1, dtype=torch.bfloat16)
    layer.norm.eps = 0.0
    exact = 1.0 + 2.0**-8
    assert (x.float() * exact).bfloat16().tolist() == layer(x, c).tolist()
    assert layer(1.5 * x, c).dtype == torch.bfloat16
    layer.modulation.weight.data[:2] = torch.tensor([[2.0**-8], [-(2.0**-8)]])
    layer.modulation.weight.data[2:] = 2.0**-8
    # -1 - 2**-8 + 2**-8 is -1, but rounding 1 + 2**-8 to 1 first would give -1 + 2**-8.
    assert layer(x, c).tolist() == [[-1.0, 1.0]]


def test_device_and_dtype_reach_the_parameters():
    layer = AdaLayerNorm(4, 3, gate=True, device="meta", dtype=torch.float16)
    assert {(p.device.type, p.dtype) for p in layer.parameters()} == {("meta", torch.float16)}
    given = (torch.ones(shape, device="meta", dtype=torch.float16) for shape in ((2, 5, 4), (2, 3)))
    y, gate = layer(*given)
    assert (y.shape, gate.shape) == ((2, 5, 4), (2, 1, 4))


def test_autocast_changes_no_dtype():
    layer = randomized(AdaLayerNorm(4, 3, gate=True))
    x, c = random_input((2, 5, 4)), random_input((2, 3), seed=2)
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x, c)
    for tensor, other in zip(found, layer(x, c), strict=True):
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, other, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("shape", [(0, 5, 4), (2, 0, 4)])
def test_empty_batches(shape):
    layer = AdaLayerNorm(4, 3, gate=True)
    y, gate = layer(torch.ones(shape), torch.ones(shape[0], 3))
    assert (y.shape, gate.shape) == (shape, (shape[0], 1, 4))


def test_it_compiles_without_a_break():
    layer = randomized(AdaLayerNorm(4, 3, gate=True))
    given = random_input((2, 5, 4)), random_input((2, 3), seed=2)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*given), layer(*given))


def test_it_shows_its_arguments():
    shown = repr(AdaLayerNorm(4, 3, gate=True))
    assert "gate=True, zero_init=True" in shown
    assert "(norm): LayerNorm((4,), eps=1e-06, elementwise_affine=False, bias=False)" in shown
    assert "(modulation): Linear(in_features=3, out_features=12, bias=True)" in shown
