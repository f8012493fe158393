"""What holds for the fused norms and the others on any input: a search for counterexamples."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as native

from lnbook.functional import (
    LayerNormFunction,
    RMSNormFunction,
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    rms_norm,
)
from tests.helpers.blocks import KERNEL, blocks_of
from tests.helpers.searches import search

repeatable = search(60)

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
seeds = st.integers(0, 2**32 - 1)
epsilons = st.sampled_from([1e-12, 1e-6, 1e-5, 1e-3, 0.5, 4.0])
special = st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1e30, 3e38, 1e-40, 7.0])


@repeatable
@given(
    st.lists(st.lists(special, min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from([1, 2**19, KERNEL]),
    st.sampled_from(DTYPES),
)
def test_special_values_give_what_the_plain_function_gives(rows, size, dtype):
    x = torch.tensor(rows, dtype=torch.float64).to(dtype)
    weight, bias = torch.tensor([[0.5, -2.0, 3.0], [1.0, 0.0, -1.0]]).to(dtype)
    with blocks_of(size):
        ours = LayerNormFunction.apply(x, (3,), weight, bias)
        root = RMSNormFunction.apply(x, (3,), weight)
    unit = max(torch.finfo(dtype).eps, 4e-6 if dtype == torch.float32 else 0.0)
    options = {"rtol": 4 * unit, "atol": 4 * unit, "equal_nan": True}
    torch.testing.assert_close(ours, layer_norm(x, (3,), weight, bias), **options)
    torch.testing.assert_close(root, rms_norm(x, (3,), weight), **options)


@repeatable
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(2, 5), epsilons, seeds)
def test_the_other_norms_agree_with_pytorch(samples, groups, per_group, positions, eps, seed):
    channels = groups * per_group
    rng = np.random.default_rng(seed)
    x = torch.tensor(
        10.0 ** rng.uniform(-1, 1) * rng.standard_normal((samples, channels, positions))
    )
    weight, bias = torch.tensor(rng.standard_normal((2, channels)))
    mean, var = torch.tensor(rng.uniform(0.1, 2.0, (2, channels)))
    options = {"rtol": 1e-8, "atol": 1e-8}
    ours, theirs = (f(x, groups, weight, bias, eps) for f in (group_norm, native.group_norm))
    torch.testing.assert_close(ours, theirs, **options)
    for ours, theirs in ((batch_norm, native.batch_norm), (instance_norm, native.instance_norm)):
        for training in (True, False):
            moved = [(mean.clone(), var.clone()) for _ in range(2)]
            results = [
                f(x, *running, weight, bias, training, 0.4, eps)
                for f, running in zip((ours, theirs), moved, strict=True)
            ]
            torch.testing.assert_close(*results, **options)
            torch.testing.assert_close(*moved, **options)
