"""The speed experiments: counts are right, and all versions compute the same results."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from lnbook.chapters.practice.speed import experiments
from lnbook.functional import BlockedLayerNormFunction
from lnbook.recurrent import plain_layer
from lnbook.reference.lstm import per_gate_step

EPS = 0.3


def tensors(*shapes: tuple[int, ...], seed: int = 0) -> list[Tensor]:
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.normal(1.0, 2.0, shape), requires_grad=True) for shape in shapes]


def moved(call: Callable[[], object]) -> tuple[int, int]:
    found = experiments.operations(call)
    return sum(one.read for one in found), sum(one.written for one in found)


def test_operations_count_what_is_read_and_written() -> None:
    a, b, one = torch.ones(10, 25), torch.ones(25), torch.ones(1)
    assert moved(lambda: a + b) == (1100, 1000)
    assert moved(lambda: a.mul_(b)) == (1100, 1000)  # reads both, and writes into a
    assert moved(lambda: torch.mul(a, b, out=torch.empty(10, 25))) == (1100, 1000)
    assert moved(lambda: torch.empty(10, 25).copy_(a)) == (1000, 1000)
    assert moved(lambda: a[2:4].sum()) == (200, 4)
    assert moved(lambda: one.expand(10, 25) + a) == (1004, 1000)


def test_operations_see_views_allocations_and_backward_passes() -> None:
    a = torch.ones(6, 4, requires_grad=True)
    found = experiments.operations(lambda: torch.empty_like(a).view(4, 6).t())
    assert [(one.name, one.read, one.written) for one in found] == [
        ("empty_like", 0, 0),
        ("view", 0, 0),
        ("t", 0, 0),
    ]
    upstream = torch.ones(6, 4)
    names = [
        one.name for one in experiments.operations(lambda: torch.autograd.grad(a * a, a, upstream))
    ]
    assert names.count("mul") == 3  # one forward, and one for the gradient of each factor
    assert "add" in names


def test_kept_bytes_count_each_piece_once() -> None:
    a, b = torch.ones(100, requires_grad=True), torch.ones(100, requires_grad=True)
    assert experiments.kept_bytes(lambda: a * b) == 800
    assert experiments.kept_bytes(lambda: a * b, a) == 400
    assert experiments.kept_bytes(lambda: a * a.view(100)) == 400  # two tensors that share memory
    assert experiments.kept_bytes(lambda: a + b) == 0


@pytest.mark.parametrize("height", [1, 3, 7, 100])
def test_every_form_of_layer_norm_equals_pytorchs(height: int) -> None:
    x, weight, bias, upstream = tensors((7, 5), (5,), (5,), (7, 5))
    inputs, upstream = (x, weight, bias), upstream.detach()
    right = functional.layer_norm(x, (5,), weight, bias, EPS)
    right_grads = torch.autograd.grad(right, inputs, upstream)
    for y in (
        experiments.variance_form(x, weight, bias, EPS),
        experiments.CenteredFunction.apply(x, weight, bias, EPS),
        experiments.BlockedFunction.apply(x, weight, bias, EPS, height),
    ):
        assert torch.allclose(y, right, rtol=0, atol=1e-12)
        for ours, theirs in zip(torch.autograd.grad(y, inputs, upstream), right_grads, strict=True):
            assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)


def test_blocks_return_statistics_and_never_touch_the_input() -> None:
    x, weight, bias = (tensor.detach() for tensor in tensors((7, 5), (5,), (5,)))
    before = x.clone()
    _, mean, r = experiments.blocked_forward(x, weight, bias, EPS, 2)
    assert torch.equal(x, before)
    assert torch.allclose(mean, x.mean(1, keepdim=True))
    assert torch.allclose(r, (x.var(1, correction=0, keepdim=True) + EPS).rsqrt())
    with pytest.raises(ValueError, match="height to be at least 1, but got 0"):
        experiments.blocked_forward(x, weight, bias, EPS, 0)
    with pytest.raises(ValueError, match="height to be at least 1, but got -1"):
        experiments.blocked_backward(x, x, weight, mean, r, -1)


def test_the_packages_function_moves_as_little_as_the_chapters() -> None:
    x, weight, bias = (tensor.detach().float() for tensor in tensors((1024, 768), (768,), (768,)))
    ours = sum(moved(lambda: BlockedLayerNormFunction.apply(x, (768,), weight, bias)))
    form = sum(moved(lambda: experiments.blocked_forward(x, weight, bias, EPS, 682)))
    native = sum(moved(lambda: functional.layer_norm(x, (768,), weight, bias)))
    size = 4 * x.numel()
    assert round(native / size) == 2
    assert round(form / size) == 8
    assert ours < 1.01 * form


@pytest.mark.parametrize("name", experiments.LSTM_STEPS)
def test_every_step_equals_the_reference_and_its_gradients(name: str) -> None:
    p = {
        key: value.requires_grad_()
        for key, value in experiments.lstm_parameters(2, 3, seed=4).items()
    }
    x, upstream = tensors((4, 5, 2), (4, 5, 3), seed=1)
    output = experiments.LSTM_STEPS[name](x, p, EPS)

    plain = {key: value.detach().numpy() for key, value in p.items()}
    h = c = np.zeros((5, 3))
    for step, got in zip(x.detach().numpy(), output.detach().numpy(), strict=True):
        h, c = per_gate_step(step, h, c, plain, EPS)
        assert np.abs(h - got).max() < 1e-12

    zero = torch.zeros(5, 3, dtype=torch.float64)
    right, _, _ = plain_layer("per-gate", x.flatten(0, 1), [5] * 4, zero, zero, p, EPS)
    inputs, upstream = (x, *p.values()), upstream.detach()
    ours = torch.autograd.grad(output, inputs, upstream)
    theirs = torch.autograd.grad(right.view(4, 5, 3), inputs, upstream)
    for key, a, b in zip(("x", *p), ours, theirs, strict=True):
        assert torch.allclose(a, b, rtol=0, atol=1e-12), key


def test_each_step_needs_fewer_operations_than_the_one_before() -> None:
    p = {key: value.requires_grad_() for key, value in experiments.lstm_parameters(2, 3).items()}
    x = torch.ones(8, 2, 2, dtype=torch.float64)
    counts = []
    for step in experiments.LSTM_STEPS.values():
        found = experiments.operations(lambda step=step: step(x, p).sum().backward())
        counts.append(sum(one.read > 0 for one in found))
    assert counts == sorted(counts, reverse=True)
    assert len(set(counts)) == len(counts)
