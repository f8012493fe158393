"""The layer-normalized GRU against NumPy, PyTorch and itself."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

from lnbook.recurrent import LayerNormGRU, LayerNormGRUCell
from tests.helpers.random_tensors import random_tensor, randomized
from tests.helpers.recurrent import assert_all_close

VARIANTS = ["ba", "none"]
SIZE = 4


# The reference: equations 26-28 of Ba, Kiros and Hinton, in NumPy and float64, gate by gate.


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def normed(groups, gains, biases, eps):
    """Concatenate the groups and apply LayerNorm to each row."""
    row = np.concatenate(groups, axis=1)
    centered = row - row.mean(axis=1, keepdims=True)
    row = centered / np.sqrt((centered**2).mean(axis=1, keepdims=True) + eps)
    return np.split(row * np.concatenate(gains) + np.concatenate(biases), len(groups), axis=1)


def summed(x, p, side, eps):
    """What the input (side "ih") or the state ("hh") contributes to r, z and n."""
    r, z, n = (x @ weight.T for weight in np.split(p[f"weight_{side}"], 3))
    nothing = np.zeros(3 * r.shape[1])
    if f"norm_{side}_weight" not in p:
        biases = np.split(p.get(f"bias_{side}", nothing), 3)
        return [a + b for a, b in zip((r, z, n), biases, strict=True)]
    gains = np.split(p[f"norm_{side}_weight"], 3)
    biases = np.split(p.get(f"norm_{side}_bias", nothing), 3)
    gates = normed([r, z], gains[:2], biases[:2], eps)
    return [*gates, *normed([n], gains[2:], biases[2:], eps)]


def reference_step(x, h, p, eps):
    (r_x, z_x, n_x), (r_h, z_h, n_h) = summed(x, p, "ih", eps), summed(h, p, "hh", eps)
    keep = sigmoid(z_x + z_h)
    candidate = np.tanh(n_x + sigmoid(r_x + r_h) * n_h)
    return keep * h + (1.0 - keep) * candidate


def state_of(cell):
    return {name: value.detach().double().numpy() for name, value in cell.state_dict().items()}


def walked(x, h, p, eps):
    outputs = []
    for row in x:
        h = reference_step(row, h, p, eps)
        outputs.append(h)
    return np.stack(outputs), h


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_cell_is_the_reference(variant, bias):
    cell = randomized(LayerNormGRUCell(5, SIZE, bias, variant=variant, eps=0.01).double())
    x, h = random_tensor(3, 5), random_tensor(3, SIZE, seed=2)
    expected = reference_step(x.numpy(), h.numpy(), state_of(cell), 0.01)
    np.testing.assert_allclose(cell(x, h).detach().numpy(), expected, rtol=1e-11, atol=1e-12)
    alone = cell(x[1], h[1]).detach().numpy()
    np.testing.assert_allclose(alone, expected[1], rtol=1e-11, atol=1e-12)
    zeros = reference_step(x.numpy(), 0 * h.numpy(), state_of(cell), 0.01)
    np.testing.assert_allclose(cell(x).detach().numpy(), zeros, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(cell(x[0]).detach().numpy(), zeros[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bias", [True, False])
def test_two_layers_are_the_reference(variant, bias):
    gru = LayerNormGRU(5, SIZE, 2, bias, variant=variant, eps=0.01, dtype=torch.float64)
    randomized(gru)
    x, h = random_tensor(6, 3, 5), random_tensor(2, 3, SIZE, seed=2)
    below, first = walked(x.numpy(), h[0].numpy(), state_of(gru.cell(0)), 0.01)
    above, second = walked(below, h[1].numpy(), state_of(gru.cell(1)), 0.01)
    output, h_n = gru(x, h)
    np.testing.assert_allclose(output.detach().numpy(), above, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(h_n.detach().numpy(), np.stack([first, second]), atol=1e-10)


def test_the_norms_forget_the_scale_of_each_matrix_but_not_of_the_candidate_alone():
    cell = randomized(LayerNormGRUCell(5, 64, eps=1e-12).double())
    x, h = random_tensor(3, 5), random_tensor(3, 64, seed=2)
    expected = cell(x, h)
    with torch.no_grad():
        for weight, factor in ((cell.weight_ih, 3.0), (cell.weight_hh, 0.2)):
            weight[:128] *= factor  # scales both gates
            weight[128:] *= 7.0  # scales the candidate by a different factor
    torch.testing.assert_close(cell(x, h), expected, rtol=1e-7, atol=1e-7)
    with torch.no_grad():
        cell.weight_ih[:64] *= 3.0  # scales only one of the two gates
    assert float((cell(x, h) - expected).detach().abs().max()) > 0.01


# Against nn.GRU

OPTIONS = [
    {},
    {"num_layers": 3},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
    {"num_layers": 2, "bias": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("packed", [True, False])
def test_without_norms_it_is_pytorchs(options, packed):
    theirs = randomized(nn.GRU(5, SIZE, dtype=torch.float64, **options))
    ours = LayerNormGRU(5, SIZE, variant=None, dtype=torch.float64, **options)
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    count = ours.num_layers * (1 + ours.bidirectional)
    found = []
    for module in (ours, theirs):
        x, h = random_tensor(6, 6, 5, grad=True), random_tensor(count, 6, SIZE, seed=2, grad=True)
        given = x
        if packed:
            lengths = torch.tensor([2, 6, 1, 6, 3, 2])
            given = pack_padded_sequence(x, lengths, ours.batch_first, enforce_sorted=False)
        output, h_n = module(given, h)
        results = [output.data if packed else output, h_n]
        upstream = [random_tensor(*t.shape, seed=9) for t in results]
        grads = torch.autograd.grad(results, [x, h, *module.parameters()], upstream)
        found.append([*results, *grads])
    assert_all_close(*found, 1e-11)


def test_the_cell_without_norms_is_pytorchs():
    theirs = randomized(nn.GRUCell(5, SIZE, dtype=torch.float64))
    ours = LayerNormGRUCell(5, SIZE, variant="none", dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    x, h = random_tensor(3, 5), random_tensor(3, SIZE, seed=2)
    assert_all_close([ours(x, h), ours(x)], [theirs(x, h), theirs(x)], 1e-12)


def test_dropout_is_pytorchs():
    options = {"num_layers": 3, "dropout": 0.4}
    theirs = randomized(nn.GRU(5, SIZE, **options))
    ours = LayerNormGRU(5, SIZE, variant="none", **options)
    ours.load_state_dict(theirs.state_dict())
    x = random_tensor(6, 3, 5, dtype=torch.float32)
    for training in (True, False):
        results = []
        for module in (ours.train(training), theirs.train(training)):
            torch.manual_seed(3)
            results.append(module(x))
        assert_all_close(*results, 1e-5)
    assert not torch.equal(ours.train()(x)[0], ours.eval()(x)[0])


# Sequences


@pytest.mark.parametrize("variant", VARIANTS)
def test_packed_sequences_are_as_each_alone(variant):
    gru = randomized(LayerNormGRU(5, SIZE, 2, bidirectional=True, variant=variant).double())
    sequences = [random_tensor(length, 5, seed=length) for length in (2, 6, 1, 4)]
    h = random_tensor(4, 4, SIZE, seed=2)
    output, h_n = gru(pack_sequence(sequences, enforce_sorted=False), h)
    padded, lengths = pad_packed_sequence(output)
    assert lengths.tolist() == [2, 6, 1, 4]
    for place, sequence in enumerate(sequences):
        alone, state = gru(sequence, h[:, place])
        assert_all_close([padded[: len(sequence), place]], [alone], 1e-11)
        assert_all_close([h_n[:, place]], [state], 1e-11)


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_halves_of_a_sequence_are_the_whole(variant):
    gru = randomized(LayerNormGRU(5, SIZE, 2, variant=variant, dtype=torch.float64))
    x = random_tensor(7, 3, 5)
    whole, end = gru(x)
    first, state = gru(x[:3])
    second, other = gru(x[3:], state)
    assert_all_close([torch.cat([first, second]), other], [whole, end], 1e-12)


def test_the_way_back_is_the_way_there_of_the_reversed_sequence():
    gru = randomized(LayerNormGRU(5, SIZE, bidirectional=True).double())
    one = LayerNormGRU(5, SIZE, dtype=torch.float64)
    state = gru.cell(0, reverse=True).state_dict()
    one.load_state_dict({f"{name}_l0": value for name, value in state.items()})
    x = random_tensor(6, 3, 5)
    output, h_n = gru(x)
    backward, h_back = one(x.flip(0))
    assert_all_close([output[..., SIZE:], h_n[1:]], [backward.flip(0), h_back], 1e-12)


def test_a_state_given_is_not_changed():
    gru = randomized(LayerNormGRU(5, SIZE, 2))
    x, h = (random_tensor(*s, dtype=torch.float32) for s in ((6, 3, 5), (2, 3, SIZE)))
    before = h.clone()
    _, h_n = gru(x, h)
    h_n.detach().zero_()
    assert torch.equal(h, before)
    batch_first = LayerNormGRU(5, SIZE, 2, batch_first=True)
    batch_first.load_state_dict(gru.state_dict())
    output, h_n = batch_first(x.transpose(0, 1), h)
    assert_all_close([output.transpose(0, 1), h_n], gru(x, h), 0.0)


# Dtypes


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_each_layer_once(variant, dtype):
    gru = randomized(LayerNormGRU(8, 16, variant=variant, dtype=dtype), scale=0.3)
    cell = gru.cell()
    x, h = (random_tensor(*s, dtype=dtype) for s in ((12, 4, 8), (4, 16)))
    found = [*gru(x), cell(x[0], h)]
    exact = copy.deepcopy(gru).double()
    expected = [*exact(x.double()), exact.cell()(x[0].double(), h.double())]
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == dtype
        error = (one.double() - other).abs()
        assert bool((error <= 0.5 * torch.finfo(dtype).eps * other.abs() + 2e-5).all())
    found[0].float().square().sum().backward()
    assert all(parameter.grad.dtype == dtype for parameter in gru.parameters())


# Construction


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bias", [True, False])
def test_first_values(variant, bias):
    torch.manual_seed(0)
    gru = LayerNormGRU(1, 64, 2, bias, variant=variant, bidirectional=True)
    assert any("bias" in name for name, _ in gru.named_parameters()) == bias
    for name, parameter in gru.named_parameters():
        if parameter.ndim == 2:
            bound = parameter.shape[1] ** -0.5
            assert float(parameter.detach().abs().max()) <= bound
            assert abs(float(parameter.detach().std()) - bound * 3.0**-0.5) < 0.1 * bound
        else:
            expected = torch.ones_like if "weight" in name else torch.zeros_like
            assert torch.equal(parameter, expected(parameter)), name


def test_names_and_shapes():
    gru = LayerNormGRU(5, SIZE, 2, bidirectional=True)
    vectors = [f"norm_{side}_{kind}" for side in ("ih", "hh") for kind in ("weight", "bias")]
    expected = {}
    for layer, width in ((0, 5), (1, 8)):
        for way in ("", "_reverse"):
            shapes = {"weight_ih": (12, width), "weight_hh": (12, SIZE)}
            shapes |= dict.fromkeys(vectors, (12,))
            expected |= {f"{name}_l{layer}{way}": shape for name, shape in shapes.items()}
    assert {name: tuple(p.shape) for name, p in gru.state_dict().items()} == expected
    assert list(LayerNormGRUCell(5, SIZE).state_dict()) == ["weight_ih", "weight_hh", *vectors]


def test_a_layer_as_a_cell_shares_its_parameters():
    gru = randomized(LayerNormGRU(5, SIZE, 2, bidirectional=True, eps=0.1))
    cell = gru.cell(1, reverse=True)
    assert (cell.input_size, cell.hidden_size, cell.variant, cell.eps) == (8, SIZE, "ba", 0.1)
    assert cell.weight_hh is gru.weight_hh_l1_reverse
    assert len(list(cell.parameters())) == 6
    with pytest.raises(IndexError, match="layer from 0 to 1"):
        gru.cell(2)
    with pytest.raises(IndexError, match="only if bidirectional"):
        LayerNormGRU(5, SIZE).cell(0, reverse=True)


def test_printing_and_devices():
    assert repr(LayerNormGRUCell(5, 4, False, variant=None)) == (
        "LayerNormGRUCell(5, 4, bias=False, variant='none')"
    )
    options = {"bias": False, "batch_first": True, "dropout": 0.5, "bidirectional": True}
    assert repr(LayerNormGRU(np.int64(5), 4, 2, **options)) == (
        "LayerNormGRU(5, 4, num_layers=2, bias=False, batch_first=True, dropout=0.5, "
        "bidirectional=True, variant='ba')"
    )
    assert LayerNormGRU(5, 4, device="meta").weight_ih_l0.device.type == "meta"
    assert LayerNormGRUCell(5, 4, device="meta", dtype=torch.float64).weight_ih.is_meta


def test_useless_dropout_warns_where_the_module_is_made():
    with pytest.warns(UserWarning, match="dropout=0.5 has no effect") as caught:
        LayerNormGRU(3, 5, dropout=0.5)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LayerNormGRU(3, 5, 2, dropout=0.5)
