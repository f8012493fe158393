"""What holds for layer-normalized LSTMs on any input: a search for counterexamples."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from lnbook.recurrent import LayerNormLSTM, fused_layer, parameter_shapes, plain_layer
from lnbook.reference import lstm as reference
from tests.helpers.recurrent import assert_all_close
from tests.helpers.searches import search

repeatable = search(30)

NORMED = ["ba", "per-gate", "carried"]
seeds = st.integers(0, 2**32 - 1)
variants = st.sampled_from([*NORMED, "none"])
epsilons = st.sampled_from([1e-6, 1e-5, 1e-3, 0.5])
batch_sizes = st.lists(st.integers(1, 4), min_size=1, max_size=5).map(
    lambda sizes: sorted(sizes, reverse=True)
)


@st.composite
def layers(draw, of=variants):
    """Draw a variant, batch sizes, rows, states and parameters; scales differ, gains may be 0."""
    variant, sizes = draw(of), draw(batch_sizes)
    input_size, size = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(seeds))
    shapes = parameter_shapes(variant, input_size, size, draw(st.booleans()))
    parameters = {}
    for name, shape in shapes.items():
        values = rng.standard_normal(shape) * 10.0 ** rng.uniform(-1, 1)
        if len(shape) == 1 and draw(st.booleans()):
            values[rng.integers(shape[0])] = 0.0
        parameters[name] = torch.tensor(values, requires_grad=True)
    x = rng.standard_normal((sum(sizes), input_size)) * 10.0 ** rng.uniform(-1, 1)
    h, c = rng.standard_normal((2, sizes[0], size)) * 10.0 ** rng.uniform(-1, 1)
    tensors = [torch.tensor(array, requires_grad=True) for array in (x, h, c)]
    return variant, sizes, tensors, parameters, rng


@repeatable
@given(layers(), epsilons)
def test_the_fused_loop_is_the_plain_one(layer, eps):
    variant, sizes, (rows, h, c), parameters, rng = layer
    found = []
    inputs = [rows, h, c, *parameters.values()]
    upstream = None
    for run in (fused_layer, plain_layer):
        results = run(variant, rows, sizes, h, c, parameters, eps)
        upstream = upstream or [torch.tensor(rng.standard_normal(t.shape)) for t in results]
        found.append((results, torch.autograd.grad(results, inputs, upstream)))
    assert_all_close(found[0][0], found[1][0], 1e-10)
    assert_all_close(found[0][1], found[1][1], 1e-7)
    with torch.no_grad():
        assert_all_close(
            fused_layer(variant, rows, sizes, h, c, parameters, eps), found[1][0], 1e-10
        )


@repeatable
@given(layers(), epsilons)
def test_each_sequence_is_the_reference_walked(layer, eps):
    variant, sizes, (rows, h, c), parameters, _ = layer
    given_parameters = {name: p.detach().numpy() for name, p in parameters.items()}
    output, h_n, c_n = fused_layer(variant, rows, sizes, h, c, parameters, eps)
    steps = output.detach().split(sizes)
    for member in range(sizes[0]):
        state = [t.detach().numpy()[member : member + 1] for t in (h, c)]
        for row, size, step in zip(rows.detach().split(sizes), sizes, steps, strict=True):
            if member < size:
                x = row[member : member + 1].numpy()
                state = reference.STEPS[variant](x, *state, given_parameters, eps)
                np.testing.assert_allclose(step[member : member + 1], state[0], atol=1e-8)
        for found, array in zip((h_n, c_n), state, strict=True):
            np.testing.assert_allclose(found.detach()[member : member + 1], array, atol=1e-7)


@repeatable
@given(layers(st.sampled_from(NORMED)), st.floats(0.5, 50.0), st.floats(0.5, 50.0))
def test_matrices_may_be_rescaled(layer, first, second):
    # LN is invariant to the scale of its input. In Ba's form, each matrix has its own norm; one
    # norm after the sum is invariant only to a common scale. It would be exact if eps were scaled.
    variant, sizes, (rows, h, c), parameters, _ = layer
    second = first if variant == "per-gate" else second
    scaled = {**parameters}
    scaled["weight_ih"] = first * parameters["weight_ih"]
    scaled["weight_hh"] = second * parameters["weight_hh"]
    with torch.no_grad():
        expected = fused_layer(variant, rows, sizes, h, c, parameters, 1e-13)
        found = fused_layer(variant, rows, sizes, h, c, scaled, 1e-13)
    if parameters["norm_c_weight"].numel() > 1:  # with a single cell, each row is constant
        assert_all_close(found, expected, 1e-3)


@repeatable
@given(layers(), seeds)
def test_members_of_a_batch_do_not_meet(layer, seed):
    variant, sizes, (rows, h, c), parameters, _ = layer
    sizes = [sizes[0]] * len(sizes)
    rng = np.random.default_rng(seed)
    x = torch.tensor(rng.standard_normal((len(sizes), sizes[0], rows.shape[1])))
    order = torch.tensor(rng.permutation(sizes[0]))
    with torch.no_grad():
        expected = fused_layer(variant, x.flatten(0, 1), sizes, h, c, parameters)
        x = x[:, order].flatten(0, 1)
        found = fused_layer(variant, x, sizes, h[order], c[order], parameters)
    output = expected[0].view(len(sizes), sizes[0], -1)[:, order].flatten(0, 1)
    assert_all_close(found, [output, expected[1][order], expected[2][order]], 1e-10)


@repeatable
@given(
    variants,
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from(["fused", "plain"]),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    seeds,
)
def test_padding_is_never_read(variant, num_layers, bidirectional, implementation, lengths, seed):
    torch.manual_seed(seed % 2**31)
    lstm = LayerNormLSTM(
        2,
        3,
        num_layers,
        bidirectional=bidirectional,
        variant=variant,
        implementation=implementation,
        dtype=torch.float64,
    )
    x = torch.randn(max(lengths), len(lengths), 2, dtype=torch.float64)
    spoiled = x.clone()
    for member, length in enumerate(lengths):
        spoiled[length:, member] = torch.nan
    results = []
    for padded in (x, spoiled):
        packed = torch.nn.utils.rnn.pack_padded_sequence(padded, lengths, enforce_sorted=False)
        output, states = lstm(packed)
        results.append([output.data, *states])
    for tensor, other in zip(*results, strict=True):
        assert bool(tensor.isfinite().all())
        assert torch.equal(tensor, other)
    for member, length in enumerate(lengths):
        _, states = lstm(x[:length, member])
        assert_all_close([state[:, member] for state in results[0][1:]], states, 1e-10)
