"""RMSNorm, BatchNorm, LayerNorm2d and DyT: numbers, state dicts, printing, rejected input."""

import inspect

import numpy as np
import pytest
import torch
from torch import nn

from lnbook import reference
from lnbook.functional import rms_norm
from lnbook.layers import BatchNorm1d, BatchNorm2d, DyT, LayerNorm, LayerNorm2d, RMSNorm
from lnbook.layers import layer_norm as module_of_layer_norm
from lnbook.layers import rms_norm as module
from tests.helpers.random_tensors import random_input, randomized

IMPLEMENTATIONS = ["auto", "native", "fused", "plain"]
BATCH_NORMS = [
    (BatchNorm1d, nn.BatchNorm1d, (6, 4)),
    (BatchNorm1d, nn.BatchNorm1d, (3, 4, 5)),
    (BatchNorm2d, nn.BatchNorm2d, (2, 4, 3, 5)),
]
PAIRS = [
    (LayerNorm, nn.LayerNorm, [{}, {"bias": False}, {"elementwise_affine": False}]),
    (RMSNorm, nn.RMSNorm, [{}, {"elementwise_affine": False}, {"eps": 0.1}]),
    (LayerNorm2d, nn.LayerNorm, [{}, {"bias": False}, {"elementwise_affine": False}]),
    *(
        (ours, theirs, [{}, {"affine": False}, {"track_running_stats": False}])
        for ours, theirs, _ in BATCH_NORMS[1:]
    ),
]
EACH = [(ours, theirs, option) for ours, theirs, options in PAIRS for option in options]
LAYERS = [
    (LayerNorm, (5, 4)),
    (RMSNorm, (5, 4)),
    (LayerNorm2d, (2, 4, 3, 5)),
    (DyT, (5, 4)),
    *((ours, shape) for ours, _, shape in BATCH_NORMS),
]


def outputs_and_gradients(layer, x, upstream):
    x = x.clone().requires_grad_()
    y = layer(x)
    return [y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], upstream)]


@pytest.mark.parametrize(("ours", "theirs", "option"), EACH)
@pytest.mark.parametrize(("source", "target"), [(0, 1), (1, 0)])
def test_state_dicts_load_both_ways(ours, theirs, option, source, target):
    layers = (randomized(ours(4, **option)), randomized(theirs(4, **option)))
    given, taken = layers[source], layers[target]
    assert list(given.state_dict()) == list(taken.state_dict())
    taken.load_state_dict(given.state_dict(), strict=True)
    for name, tensor in given.state_dict().items():
        assert torch.equal(taken.state_dict()[name], tensor)


@pytest.mark.parametrize(("ours", "theirs", "option"), EACH)
def test_construction_is_that_of_pytorch(ours, theirs, option):
    ours, theirs = ours(4, **option), theirs(4, **option)
    state, expected = ours.state_dict(), theirs.state_dict()
    assert all(torch.equal(state[name], tensor) for name, tensor in expected.items())
    assert [b is None for b in ours._buffers.values()] == [
        b is None for b in theirs._buffers.values()
    ]
    if not isinstance(ours, LayerNorm2d):
        assert repr(ours) == repr(theirs)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(RMSNorm, nn.RMSNorm), *((o, t) for o, t, _ in BATCH_NORMS[1:])]
)
def test_argument_names_and_defaults_are_those_of_pytorch(ours, theirs):
    def arguments(layer):
        return {p.name: p.default for p in inspect.signature(layer).parameters.values()}

    expected = arguments(theirs)
    assert {name: arguments(ours)[name] for name in expected} == expected
    assert [*arguments(ours)][: len(expected) - 1] == [*expected][:-1]


# RMSNorm


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("options", [{}, {"elementwise_affine": False}, {"eps": 0.1}])
@pytest.mark.parametrize(("normalized_shape", "shape"), [((6,), (4, 6)), ((3, 6), (2, 4, 3, 6))])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 5e-6)])
def test_rms_norm_equals_pytorch(
    implementation, options, normalized_shape, shape, dtype, tolerance
):
    ours = randomized(
        RMSNorm(normalized_shape, dtype=dtype, implementation=implementation, **options)
    )
    theirs = nn.RMSNorm(normalized_shape, dtype=dtype, **options)
    theirs.load_state_dict(ours.state_dict())
    x, upstream = random_input(shape, dtype), random_input(shape, dtype, seed=2)
    results = [outputs_and_gradients(layer, x, upstream) for layer in (ours, theirs)]
    for tensor, expected in zip(*results, strict=True):
        torch.testing.assert_close(tensor, expected, rtol=tolerance, atol=tolerance)


def test_rms_norm_takes_pytorchs_kernel_elsewhere_than_on_a_cpu(monkeypatch):
    called = []
    monkeypatch.setattr(module, "native", lambda *given: called.append(given[0].device.type))
    monkeypatch.setattr(module.RMSNormFunction, "apply", lambda *given: called.append("fused"))
    for device in ("cpu", "meta"):
        RMSNorm(4, device=device)(torch.ones(2, 4, device=device))
    assert called == ["fused", "meta"]


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_the_implementations_of_rms_norm_run_what_they_name(implementation, monkeypatch):
    called = []
    monkeypatch.setattr(module, "native", lambda *given: called.append("native"))
    monkeypatch.setattr(module, "rms_norm", lambda *given: called.append("plain"))
    monkeypatch.setattr(module.RMSNormFunction, "apply", lambda *given: called.append("fused"))
    RMSNorm(4, implementation=implementation)(torch.ones(2, 4))
    assert called == ["fused" if implementation == "auto" else implementation]


@pytest.mark.parametrize(
    ("layer", "source"), [(RMSNorm, module), (LayerNorm, module_of_layer_norm)]
)
def test_a_failure_of_pytorchs_kernel_is_no_output(layer, source, monkeypatch):
    def failing(*given):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(source, "native", failing)
    made = layer(4, device="meta")
    with pytest.raises(RuntimeError, match="out of memory"):
        made(torch.ones(2, 4, device="meta"))


def test_rms_norm_on_another_device():
    layer = RMSNorm(4, device="meta", dtype=torch.float16)
    assert layer(torch.ones(2, 4, device="meta", dtype=torch.float16)).shape == (2, 4)
    with pytest.raises(RuntimeError, match=r"normalized_shape=\(4,\), but got input of .*\(4, 5\)"):
        layer(torch.ones(4, 5, device="meta", dtype=torch.float16))


@pytest.mark.parametrize("implementation", ["auto", "fused", "plain"])  # "native" rounds more often
def test_rms_norm_in_half_precision(implementation):
    layer, x = (
        randomized(RMSNorm(32, implementation=implementation)),
        random_input((8, 32), torch.bfloat16),
    )
    exact = rms_norm(x.double(), (32,), layer.weight.double(), torch.finfo(torch.float32).eps)
    unit = torch.finfo(torch.bfloat16).eps
    assert bool(((layer(x) - exact).abs() <= 0.5 * unit * exact.abs() + 4e-6).all())


# Batch norm


@pytest.mark.parametrize(("ours", "theirs", "shape"), BATCH_NORMS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False},
        {"affine": False},
        {"momentum": None},
        {"momentum": 0.7, "eps": 0.1},
        {"track_running_stats": False},
    ],
)
def test_batch_norm_equals_pytorch_over_a_training(ours, theirs, shape, options):
    ours = randomized(ours(4, dtype=torch.float64, **options))
    options = {name: value for name, value in options.items() if name != "bias"}
    theirs = theirs(4, dtype=torch.float64, **options)
    theirs.load_state_dict(ours.state_dict(), strict=False)
    for step in range(5):
        ours.train(step != 3), theirs.train(step != 3)
        x = random_input(shape, torch.float64, seed=step)
        upstream = random_input(shape, torch.float64, seed=9)
        expected = outputs_and_gradients(theirs, x, upstream)
        for tensor, other in zip(outputs_and_gradients(ours, x, upstream), expected, strict=False):
            torch.testing.assert_close(tensor, other, rtol=1e-9, atol=1e-9)
        for name, buffer in ours.named_buffers():
            torch.testing.assert_close(buffer, theirs.get_buffer(name), rtol=1e-12, atol=1e-12)


def test_batch_norm_momentum_none_keeps_the_mean_of_all_batches():
    layer, batches = BatchNorm1d(2, momentum=None), [random_input((8, 2), seed=s) for s in range(3)]
    for x in batches:
        layer(x)
    expected = torch.stack([x.mean(0) for x in batches]).mean(0)
    torch.testing.assert_close(layer.running_mean, expected)
    assert layer.num_batches_tracked.item() == 3


@pytest.mark.parametrize("layer", [BatchNorm1d, BatchNorm2d])
def test_the_state_dict_of_batch_norm_has_pytorchs_version(layer):
    theirs = getattr(nn, layer.__name__)(3).state_dict()._metadata
    assert layer(3).state_dict()._metadata == theirs


def test_batch_norm_resets_everything():
    layer = randomized(BatchNorm1d(2))
    layer(random_input((8, 2)))
    layer.reset_parameters()
    fresh = BatchNorm1d(2).state_dict()
    assert all(torch.equal(tensor, fresh[name]) for name, tensor in layer.state_dict().items())


def test_batch_norm_refuses_one_value_a_channel_in_training_only():
    layer = BatchNorm1d(3)
    with pytest.raises(ValueError, match=r"more than one value .* input of shape \(1, 3\)"):
        layer(torch.ones(1, 3))
    assert layer.eval()(torch.ones(1, 3)).shape == (1, 3)


@pytest.mark.parametrize(
    ("layer", "shape", "error", "message"),
    [
        (BatchNorm1d(3), (4, 3, 2, 2), ValueError, r"\(N, C\) or \(N, C, L\), .*\(4, 3, 2, 2\)"),
        (BatchNorm2d(3), (4, 3, 2), ValueError, r"\(N, C, H, W\), .* of shape \(4, 3, 2\)"),
        (BatchNorm1d(3), (4, 2), RuntimeError, r"num_features=3 .* of shape \(4, 2\)"),
        (BatchNorm2d(3), (1, 4, 2, 2), RuntimeError, r"num_features=3 .* of shape \(1, 4, 2, 2\)"),
    ],
)
def test_batch_norm_refuses_other_shapes(layer, shape, error, message):
    with pytest.raises(error, match=message):
        layer(torch.ones(shape))


# LayerNorm2d


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("option", [{}, {"bias": False}, {"elementwise_affine": False}])
def test_layer_norm_2d_normalizes_channels_at_each_position(implementation, option):
    layer = randomized(LayerNorm2d(4, dtype=torch.float64, implementation=implementation, **option))
    x, upstream = random_input((2, 4, 3, 5), torch.float64), random_input((2, 4, 3, 5)).double()
    results = outputs_and_gradients(layer, x, upstream)
    theirs = nn.LayerNorm(4, 1e-6, dtype=torch.float64, **option)
    theirs.load_state_dict(layer.state_dict())

    def moved(tensor):
        return tensor.movedim(1, -1).contiguous()

    expected = outputs_and_gradients(theirs, moved(x), moved(upstream))
    torch.testing.assert_close(moved(results[0]), expected[0])
    torch.testing.assert_close(moved(results[1]), expected[1])
    assert results[0].is_contiguous(memory_format=torch.channels_last)
    for grad, other in zip(results[2:], expected[2:], strict=True):
        torch.testing.assert_close(grad, other)


def test_layer_norm_2d_is_neither_layer_norm_nor_group_norm():
    x = random_input((2, 4, 3, 5))
    assert not torch.allclose(LayerNorm2d(4)(x), LayerNorm((4, 3, 5))(x), atol=1e-2)
    assert not torch.allclose(LayerNorm2d(4)(x), nn.GroupNorm(1, 4)(x), atol=1e-2)
    values = x[1, :, 2, 3].numpy()
    expected = reference.layer_norm(values, 4, eps=1e-6)
    y = LayerNorm2d(4)(x)[1, :, 2, 3].detach().numpy()
    np.testing.assert_allclose(y, expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 3, 5), (2, 3, 4, 5), (2, 5, 5, 4), (4,)])
def test_layer_norm_2d_refuses_other_shapes(shape):
    with pytest.raises(RuntimeError, match=r"LayerNorm2d: .*\(N, 4, H, W\), but got input"):
        LayerNorm2d(4)(torch.ones(shape))


# DyT


def test_dyt_is_a_tanh_of_learned_width():
    layer = randomized(DyT(4, dtype=torch.float64))
    x = random_input((3, 4), torch.float64)
    weight, bias, alpha = (getattr(layer, n).detach().numpy() for n in ("weight", "bias", "alpha"))
    expected = weight * np.tanh(alpha * x.numpy()) + bias
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-12)
    assert [*layer.state_dict()] == ["alpha", "weight", "bias"]
    assert torch.autograd.gradcheck(layer, (x.requires_grad_(),))


def test_dyt_starts_and_resets():
    layer = DyT((2, 3), 0.25)
    randomized(layer).reset_parameters()
    assert layer.alpha.tolist() == [0.25]
    assert layer.weight.tolist() == [[1.0] * 3] * 2
    assert layer.bias.tolist() == [[0.0] * 3] * 2
    assert [*DyT(3, bias=False).state_dict()] == ["alpha", "weight"]
    assert [*DyT(3, elementwise_affine=False).state_dict()] == ["alpha"]


def test_dyt_shows_its_arguments():
    expected = "DyT((3,), alpha_init=0.25, elementwise_affine=True, bias=False)"
    assert repr(DyT(3, 0.25, bias=False)) == expected


@pytest.mark.parametrize("shape", [(3,), (2, 3), (4, 2, 3), (3, 3)])
def test_dyt_takes_any_leading_dimensions(shape):
    x = random_input(shape)
    torch.testing.assert_close(DyT(3)(x), torch.tanh(0.5 * x))


def test_dyt_elements_do_not_see_each_other():
    layer, x = randomized(DyT(4)), random_input((3, 4))
    y = layer(x).clone()
    x[0, 0] = 100.0
    assert torch.equal(layer(x).flatten()[1:], y.flatten()[1:])


def test_dyt_refuses_another_shape():
    for layer in (DyT((2, 3)), DyT((2, 3), elementwise_affine=False)):
        with pytest.raises(RuntimeError, match=r"DyT: .*normalized_shape=\(2, 3\), .*\(3, 2\)"):
            layer(torch.ones(3, 2))


# All of them


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
def test_device_and_dtype_reach_parameters_and_buffers(layer, shape):
    made = layer(4, device="meta", dtype=torch.float16)
    for name, tensor in made.state_dict().items():
        assert tensor.device.type == "meta"
        assert tensor.dtype == (torch.long if name == "num_batches_tracked" else torch.float16)
    x = torch.ones(shape, device="meta", dtype=torch.float16)
    if layer not in (BatchNorm1d, BatchNorm2d):
        assert made(x).shape == shape


@pytest.mark.parametrize(("layer", "shape"), LAYERS)
def test_conversion_and_half_inputs(layer, shape):
    made = randomized(layer(4))
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        assert made(random_input(shape, dtype)).dtype == dtype
    assert made.to(torch.float64)(random_input(shape, torch.float64)).dtype == torch.float64
    with pytest.raises(RuntimeError, match=r"to be torch\.float32 for an input of torch\.float32"):
        made(random_input(shape))
