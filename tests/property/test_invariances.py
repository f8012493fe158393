"""Checks the identities and invariances that the course proves, on random float64 numbers.

`LAYER_NORMS` and `RMS_NORMS` are the ways in which lnbook computes each norm; where the course says
that a norm lacks an invariance, that's tested, too.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from lnbook import reference
from lnbook.functional import (
    LayerNormFunction,
    RMSNormFunction,
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from lnbook.layers import fold_centering
from tests.helpers.searches import search

repeatable = search(25)

Norm = Callable[..., Tensor]

LAYER_NORMS: dict[str, Norm] = {
    "plain": lambda x, eps=0.0: layer_norm(x, x.shape[-1:], eps=eps),
    "fused": lambda x, eps=0.0: LayerNormFunction.apply(x, x.shape[-1:], eps=eps),
}
RMS_NORMS: dict[str, Norm] = {
    "plain": lambda x, eps=0.0: rms_norm(x, x.shape[-1:], eps=eps),
    "fused": lambda x, eps=0.0: RMSNormFunction.apply(x, x.shape[-1:], eps=eps),
}
layer_norms = pytest.mark.parametrize("norm", LAYER_NORMS.values(), ids=LAYER_NORMS)
rms_norms = pytest.mark.parametrize("norm", RMS_NORMS.values(), ids=RMS_NORMS)
both = pytest.mark.parametrize(
    ("norm", "centered"),
    [(LAYER_NORMS["fused"], True), (RMS_NORMS["fused"], False)],
    ids=["layer_norm", "rms_norm"],
)

rows = st.tuples(st.integers(1, 4), st.integers(3, 8), st.integers(0, 2**32 - 1))
epsilons = st.sampled_from([1e-6, 1e-3, 0.5])
scales = st.sampled_from([0.25, 3.0, 40.0])


def numbers(seed: int, *shape: int) -> Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


def close(ours: Tensor, theirs: Tensor, tolerance: float = 1e-9) -> None:
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def gradients(function: Norm, *tensors: Tensor, seed: int = 7) -> tuple[Tensor, ...]:
    inputs = [tensor.clone().requires_grad_() for tensor in tensors]
    y = function(*inputs)
    return torch.autograd.grad(y, inputs, numbers(seed, *y.shape))


@layer_norms
@repeatable
@given(problem=rows, eps=epsilons)
def test_the_length_of_a_normalized_row_is_known_and_its_sum_is_zero(norm, problem, eps):
    count, features, seed = problem
    x = numbers(seed, count, features)
    y, variance = norm(x, eps), x.var(-1, correction=0)
    close(y.norm(dim=-1), (features * variance / (variance + eps)).sqrt())
    close(y.sum(-1), torch.zeros(count, dtype=torch.float64))


@layer_norms
@repeatable
@given(problem=rows, shift=st.floats(-100.0, 100.0), scale=scales)
def test_layer_norm_projects_and_scales_to_a_sphere(norm, problem, shift, scale):
    # Brody, Alon and Yahav 2023: project orthogonally to 1, then scale to length sqrt(H). So
    # shifting or scaling a row doesn't matter, flipping its sign flips the output, and normalizing
    # again changes nothing.
    count, features, seed = problem
    x = numbers(seed, count, features)
    projected = x - x.mean(-1, keepdim=True)
    y = norm(x)
    close(y, math.sqrt(features) * projected / projected.norm(dim=-1, keepdim=True))
    close(norm(scale * x + shift), y)
    close(norm(-scale * x), -y)
    close(norm(y), y)


@rms_norms
@repeatable
@given(problem=rows, scale=scales)
def test_rms_norm_scales_to_a_sphere_and_does_not_project(norm, problem, scale):
    count, features, seed = problem
    x = numbers(seed, count, features)
    y = norm(x)
    close(y, math.sqrt(features) * x / x.norm(dim=-1, keepdim=True))
    close(norm(scale * x), y)
    assert torch.equal(norm(-x), -y)
    close(norm(y), y)
    assert not torch.allclose(norm(x + 3.0), y, atol=1e-3)


@repeatable
@given(problem=rows)
def test_two_features_give_plus_and_minus_one_and_no_gradient(problem):
    count, _, seed = problem
    x = numbers(seed, count, 2)
    for norm in LAYER_NORMS.values():
        close(norm(x).abs(), torch.ones(count, 2, dtype=torch.float64))
        close(gradients(norm, x)[0], torch.zeros(count, 2, dtype=torch.float64), 1e-7)


@layer_norms
@repeatable
@given(problem=rows, eps=epsilons)
def test_the_gradient_has_mean_zero_and_a_bounded_variance(norm, problem, eps):
    # Xu et al. 2019. Without a gain, g is the upstream gradient.
    count, features, seed = problem
    x, upstream = numbers(seed, count, features), numbers(7, count, features)
    (grad,) = gradients(lambda x: norm(x, eps), x)
    variance = x.var(-1, correction=0)
    close(grad.mean(-1), torch.zeros(count, dtype=torch.float64), 1e-8)
    bound = upstream.var(-1, correction=0) / (variance + eps)
    assert bool((grad.var(-1, correction=0) <= bound * (1 + 1e-9)).all())


@pytest.mark.parametrize(("name", "lost"), [("layer_norm", 2), ("rms_norm", 1)])
@repeatable
@given(problem=rows)
def test_what_the_jacobian_loses(name, lost, problem):
    _, features, seed = problem
    x = numbers(seed, features).numpy()
    backward = getattr(reference, f"{name}_backward")

    def jacobian_of(eps: float) -> np.ndarray:
        # A row of the Jacobian is the gradient of one element of the output.
        return backward(np.eye(features), np.tile(x, (features, 1)), features, eps=eps)[0]

    jacobian = jacobian_of(0.0)
    np.testing.assert_allclose(jacobian @ x, 0.0, atol=1e-9)
    np.testing.assert_allclose(jacobian, jacobian.T, atol=1e-12)
    assert np.linalg.matrix_rank(jacobian, tol=1e-8) == features - lost
    # An eps above 0 restores the direction of x, but not that of 1.
    assert np.linalg.matrix_rank(jacobian_of(0.1), tol=1e-8) == features - lost + 1
    if name == "layer_norm":
        np.testing.assert_allclose(jacobian_of(0.1) @ np.ones(features), 0.0, atol=1e-12)


@both
@repeatable
@given(problem=rows)
def test_weights_before_a_norm_are_scale_free(norm, centered, problem):
    count, features, seed = problem
    x, weight = numbers(seed, count, 3), numbers(seed + 1, features, 3)

    def loss(weight: Tensor) -> Tensor:
        y = norm(x @ weight.T)
        return (numbers(7, *y.shape) * y).sum()

    grad = torch.func.grad(loss)(weight)
    scale = float(grad.abs().max())
    close((grad * weight).sum() / scale, torch.zeros((), dtype=torch.float64), 1e-7)
    close(torch.func.grad(loss)(2.0 * weight) / scale, grad / (2.0 * scale), 1e-7)
    if centered:  # the norm removes the mean, so no gradient reaches it
        close(grad.sum(0) / scale, torch.zeros(3, dtype=torch.float64), 1e-7)

    def curvature(weight: Tensor) -> Tensor:
        direction = numbers(seed + 2, *weight.shape)
        slope = lambda at: (torch.func.grad(loss)(at) * direction).sum()  # noqa: E731
        return (torch.func.grad(slope)(weight) * direction).sum()

    bent = curvature(weight)
    close(curvature(2.0 * weight) / bent, torch.tensor(0.25, dtype=torch.float64), 1e-5)


@repeatable
@given(problem=rows, eps=epsilons)
def test_layer_norm_is_rms_norm_of_centered_weights(problem, eps):
    count, features, seed = problem
    x, weight = numbers(seed, count, 3), numbers(seed + 1, features, 3)
    bias = numbers(seed + 2, features)
    folded, shift = fold_centering(weight, bias)
    for name, norm in LAYER_NORMS.items():
        ours = RMS_NORMS[name](x @ folded.T + shift, eps)
        close(ours, norm(x @ weight.T + bias, eps), 1e-8)


# Ba, Kiros and Hinton 2016, table 1, with a row for RMSNorm: which changes leave the
# outputs unchanged.

CHANGES: dict[str, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "matrix rescaled": lambda x, w: (x, 3.0 * w),
    "matrix recentered": lambda x, w: (x, w + numbers(9, w.shape[1])),
    "one vector rescaled": lambda x, w: (x, torch.cat([3.0 * w[:1], w[1:]])),
    "data rescaled": lambda x, w: (3.0 * x, w),
    "data recentered": lambda x, w: (x + numbers(9, x.shape[1]), w),
    "one case rescaled": lambda x, w: (torch.cat([3.0 * x[:1], x[1:]]), w),
}
TABLE = {"batch_norm": "I.III.", "layer_norm": "II.I.I", "rms_norm": "I..I.I"}
OUTPUTS: dict[str, Norm] = {
    "batch_norm": lambda a: batch_norm(a, None, None, training=True, eps=1e-12),
    "layer_norm": LAYER_NORMS["plain"],
    "rms_norm": RMS_NORMS["plain"],
}


@pytest.mark.parametrize("name", TABLE)
@repeatable
@given(features=st.integers(3, 6), count=st.integers(3, 6), seed=st.integers(0, 2**32 - 1))
def test_the_table_of_ba_et_al(name, features, count, seed):
    x, weight = numbers(seed, count, 4), numbers(seed + 1, features, 4)
    before = OUTPUTS[name](x @ weight.T)
    for mark, (change, apply) in zip(TABLE[name], CHANGES.items(), strict=True):
        changed_x, changed_weight = apply(x, weight)
        after = OUTPUTS[name](changed_x @ changed_weight.T)
        difference = float((after - before).abs().max())
        assert (difference < 1e-6) == (mark == "I"), f"{change}: {difference}"


@repeatable
@given(
    st.integers(2, 3),
    st.integers(1, 4),
    st.integers(2, 5),
    epsilons,
    st.integers(0, 2**32 - 1),
)
def test_the_family_is_one_norm_over_different_groups(samples, channels, positions, eps, seed):
    x = numbers(seed, samples, channels, positions)
    close(group_norm(x, 1, eps=eps), layer_norm(x, (channels, positions), eps=eps))
    close(group_norm(x, channels, eps=eps), instance_norm(x, eps=eps))
    close(instance_norm(x, eps=eps), layer_norm(x, (positions,), eps=eps))
    turned = x.transpose(0, 1)  # each channel of the batch becomes a row
    rows_of_channels = layer_norm(turned, (samples, positions), eps=eps).transpose(0, 1)
    close(batch_norm(x, None, None, training=True, eps=eps), rows_of_channels)
