"""The cell and both loops against NumPy, PyTorch, each other and finite differences."""

import copy
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence

from lnbook.recurrent import (
    LayerNormLSTM,
    LayerNormLSTMCell,
    _backward,
    ba_step,
    carried_step,
    fused,
    fused_layer,
    parameter_shapes,
    per_gate_step,
    plain_layer,
)
from lnbook.reference import lstm as reference
from tests.helpers.random_tensors import random_tensor, randomized
from tests.helpers.recurrent import assert_all_close, layer_case, results_and_gradients

NORMED = ["ba", "per-gate", "carried"]
VARIANTS = [*NORMED, "none"]
EQUAL, SHRINKING = [3, 3, 3, 3], [4, 4, 2, 2, 1]


def walked(variant, x, h, c, parameters, eps):
    """Run over the sequence `(L, N, I)` with the NumPy step."""
    outputs = []
    for row in x:
        h, c = reference.STEPS[variant](row, h, c, parameters, eps)
        outputs.append(h)
    return np.stack(outputs), h, c


@pytest.fixture(params=["kernel", "torch operations"])
def loop(request, monkeypatch):
    """Run a test twice: the fused loop as a kernel, and as torch operations."""
    if request.param != "kernel":
        monkeypatch.setattr(fused, "_has_kernel", lambda plan, inputs: False)
    return request.param


# One step


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_cell_is_the_reference(variant, bias):
    cell = randomized(LayerNormLSTMCell(5, 4, bias, variant=variant, eps=0.01).double())
    x, h, c = (random_tensor(3, n, seed=s) for n, s in ((5, 1), (4, 2), (4, 3)))
    expected = reference.STEPS[variant](x, h, c, cell.state_dict(), 0.01)
    for found, array in zip(cell(x, (h, c)), expected, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), array, rtol=1e-11, atol=1e-12)
    alone = cell(x[1], (h[1], c[1]))
    for found, array in zip(alone, expected, strict=True):
        np.testing.assert_allclose(found.detach().numpy(), array[1], rtol=1e-11, atol=1e-12)
    zeros = reference.STEPS[variant](x, 0 * h, 0 * c, cell.state_dict(), 0.01)
    np.testing.assert_allclose(cell(x)[0].detach().numpy(), zeros[0], rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_half_precision_step_is_rounded_once(variant, dtype):
    cell = randomized(LayerNormLSTMCell(16, 32, variant=variant, dtype=dtype), scale=0.3)
    x, h, c = (random_tensor(4, n, seed=n, dtype=dtype) for n in (16, 32, 32))
    state = {name: p.double() for name, p in cell.state_dict().items()}
    expected = reference.STEPS[variant](x.double(), h.double(), c.double(), state, cell.eps)
    for found, array in zip(cell(x, (h, c)), expected, strict=True):
        assert found.dtype == dtype
        error = (found.detach().double() - torch.tensor(array)).abs()
        exact = torch.tensor(array).abs()
        assert bool((error <= 0.5 * torch.finfo(dtype).eps * exact + 1e-5).all())


# Loops


@pytest.mark.parametrize("implementation", ["fused", "plain"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.usefixtures("loop")
def test_two_layers_are_the_reference(implementation, variant, bias):
    lstm = LayerNormLSTM(
        5, 4, 2, bias, variant=variant, implementation=implementation, eps=0.01, dtype=torch.float64
    )
    randomized(lstm)
    x, h, c = random_tensor(6, 3, 5), random_tensor(2, 3, 4, seed=2), random_tensor(2, 3, 4, seed=3)
    below, *ends = walked(variant, x, h[0], c[0], lstm.cell(0).state_dict(), 0.01)
    above, *more = walked(variant, below, h[1], c[1], lstm.cell(1).state_dict(), 0.01)
    for output, (h_n, c_n) in (lstm(x, (h, c)), without_gradients(lstm, x, (h, c))):
        np.testing.assert_allclose(output.detach().numpy(), above, rtol=1e-9, atol=1e-10)
        for found, lower, upper in zip((h_n, c_n), ends, more, strict=True):
            expected = np.stack([lower, upper])
            np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-9, atol=1e-10)


def without_gradients(module, *arguments):
    with torch.no_grad():
        return module(*arguments)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("sizes", [EQUAL, SHRINKING, [1], [5], [2, 1, 1, 1, 1, 1]])
@pytest.mark.parametrize(("bias", "chunk"), [(True, 1), (False, 60), (True, None)])
@pytest.mark.usefixtures("loop")
def test_the_fused_loop_is_the_plain_one(variant, sizes, bias, chunk, monkeypatch):
    if chunk is not None:
        monkeypatch.setattr(_backward, "CHUNK_ELEMENTS", chunk)
    case = layer_case(variant, sizes, bias=bias)
    found = results_and_gradients(fused_layer, variant, sizes, case)
    expected = results_and_gradients(plain_layer, variant, sizes, case)
    assert_all_close(found[:3], expected[:3], 1e-12)
    assert_all_close(found[3:], expected[3:], 1e-11)
    with torch.no_grad():
        results = fused_layer(variant, case[0], sizes, *case[1:])
    assert_all_close(results, expected[:3], 1e-12)


@pytest.mark.parametrize("variant", NORMED)
@pytest.mark.usefixtures("loop")
def test_the_fused_loop_in_float32_is_as_exact_as_the_plain_one(variant):
    """Thirty steps amplify an error in the last bit, so compare means over many results."""
    ratios = [ratio for seed in range(6) for ratio in ratios_of_errors(variant, seed)]
    assert float(np.exp(np.mean(np.log(ratios)))) < 2.0


def ratios_of_errors(variant, seed):
    """How many times larger the fused loop's error is for each float32 result."""
    torch.manual_seed(seed)
    lstm = LayerNormLSTM(16, 32, variant=variant)
    for name, parameter in lstm.named_parameters():
        if "norm" in name or "bias" in name:
            parameter.data += 0.3 * torch.randn(parameter.shape)
    parameters, sizes = dict(lstm.cell().named_parameters()), [8] * 30
    case = [torch.randn(shape, requires_grad=True) for shape in ((240, 16), (8, 32), (8, 32))]
    wide = {name: p.detach().double().requires_grad_() for name, p in parameters.items()}
    double = [tensor.detach().double().requires_grad_() for tensor in case]
    exact = results_and_gradients(plain_layer, variant, sizes, (*double, wide))
    fused = results_and_gradients(fused_layer, variant, sizes, (*case, parameters))
    plain = results_and_gradients(plain_layer, variant, sizes, (*case, parameters))
    for tensor, found, other in zip(exact, fused, plain, strict=True):
        errors = [float((t - tensor).abs().max()) for t in (found, other)]
        yield errors[0] / errors[1]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("used", range(3))
@pytest.mark.usefixtures("loop")
def test_gradients_of_each_result_alone(variant, used):
    case = layer_case(variant, SHRINKING)
    inputs = [*case[:3], *case[3].values()]
    grads = []
    for run in (fused_layer, plain_layer):
        result = run(variant, case[0], SHRINKING, *case[1:])[used]
        upstream = random_tensor(*result.shape, seed=7)
        unused = torch.autograd.grad(result, inputs, upstream, materialize_grads=True)
        grads.append(unused)
    assert_all_close(*grads, 1e-11)


@pytest.mark.usefixtures("loop")
def test_second_derivatives_where_inputs_depend_on_each_other():
    def penalty(run):
        rows, h, c, parameters = layer_case("ba", EQUAL)
        weight = parameters["weight_hh"]
        h = h + weight[: len(h)].square()  # the state depends on a parameter
        results = run("ba", rows, EQUAL, h, c, parameters)
        loss = sum((result * random_tensor(*result.shape)).sum() for result in results)
        first = torch.autograd.grad(loss, [weight, rows], create_graph=True)
        total = sum(grad.square().sum() for grad in first)
        return torch.autograd.grad(total, [weight, rows, c, *parameters.values()])

    assert_all_close(penalty(fused_layer), penalty(plain_layer), 1e-10)


@pytest.mark.parametrize("variant", NORMED)
@pytest.mark.parametrize("frozen", [0, 1, 2, 3, 4, 5, -1])
@pytest.mark.usefixtures("loop")
def test_what_needs_no_gradient_gets_none(variant, frozen):
    case = layer_case(variant, EQUAL)
    inputs = [*case[:3], *case[3].values()]
    inputs[frozen].requires_grad_(False)
    rest = [tensor for tensor in inputs if tensor.requires_grad]
    grads = []
    for run in (fused_layer, plain_layer):
        output, *_ = run(variant, case[0], EQUAL, *case[1:])
        grads.append(torch.autograd.grad(output, rest, random_tensor(*output.shape)))
    assert_all_close(*grads, 1e-11)


@pytest.mark.parametrize("variant", NORMED)
@pytest.mark.usefixtures("loop")
def test_backward_twice_and_what_was_given_stays(variant):
    case = layer_case(variant, SHRINKING)
    inputs = [*case[:3], *case[3].values()]
    copies = [tensor.detach().clone() for tensor in inputs]
    results = fused_layer(variant, case[0], SHRINKING, *case[1:])
    upstream = [random_tensor(*result.shape) for result in results]
    kept = [tensor.clone() for tensor in (*upstream, *results)]
    first = torch.autograd.grad(results, inputs, upstream, retain_graph=True)
    second = torch.autograd.grad(results, inputs, upstream)
    assert_all_close(second, first, 0.0)
    for tensor, before in zip(inputs, copies, strict=True):
        assert torch.equal(tensor, before)
    for tensor, before in zip((*upstream, *results), kept, strict=True):
        assert torch.equal(tensor, before)
    with torch.no_grad():
        fused_layer(variant, case[0], SHRINKING, *case[1:])
    for tensor, before in zip(inputs, copies, strict=True):
        assert torch.equal(tensor, before)
    assert len({grad.data_ptr() for grad in first}) == len(first)


@pytest.mark.usefixtures("loop")
def test_an_output_changed_in_place_is_noticed():
    case = layer_case("ba", EQUAL)
    output, *_ = fused_layer("ba", case[0], EQUAL, *case[1:])
    output.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        output.sum().backward()


@pytest.mark.usefixtures("loop")
def test_gains_of_zero_have_gradients():
    case = layer_case("per-gate", EQUAL)
    with torch.no_grad():
        for name in ("norm_gates_weight", "norm_c_weight"):
            case[3][name][::2] = 0.0
    found = results_and_gradients(fused_layer, "per-gate", EQUAL, case)
    expected = results_and_gradients(plain_layer, "per-gate", EQUAL, case)
    assert all(bool(grad.isfinite().all()) for grad in found[3:])
    assert_all_close(found[3:], expected[3:], 1e-11)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PyTorch's own, from TorchScript
def test_the_fused_loop_refuses_forward_mode():
    fused = randomized(LayerNormLSTM(2, 3).double())
    x, tangent = random_tensor(4, 2, 2), random_tensor(4, 2, 2, seed=8)
    with (
        pytest.raises(NotImplementedError, match="forward mode"),
        torch.autograd.forward_ad.dual_level(),
    ):
        fused(torch.autograd.forward_ad.make_dual(x, tangent))


# Against nn.LSTM

OPTIONS = [
    {},
    {"num_layers": 3},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
    {"num_layers": 2, "bias": False},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("implementation", ["fused", "plain"])
@pytest.mark.parametrize("packed", [True, False])
def test_without_norms_it_is_pytorchs(options, implementation, packed):
    theirs = randomized(nn.LSTM(5, 4, dtype=torch.float64, **options))
    ours = LayerNormLSTM(
        5, 4, variant=None, implementation=implementation, dtype=torch.float64, **options
    )
    ours.load_state_dict(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert [name for name, _ in ours.named_parameters()] == [
        name for name, _ in theirs.named_parameters()
    ]
    count = ours.num_layers * (1 + ours.bidirectional)
    found = []
    for module in (ours, theirs):
        x = random_tensor(6, 6, 5, grad=True)
        h, c = (random_tensor(count, 6, 4, seed=s, grad=True) for s in (2, 3))
        given = x
        if packed:
            lengths = torch.tensor([2, 6, 1, 6, 3, 2])
            given = pack_padded_sequence(x, lengths, ours.batch_first, enforce_sorted=False)
        output, (h_n, c_n) = module(given, (h, c))
        results = [output.data if packed else output, h_n, c_n]
        upstream = [random_tensor(*t.shape, seed=9) for t in results]
        grads = torch.autograd.grad(results, [x, h, c, *module.parameters()], upstream)
        found.append([*results, *grads])
    assert_all_close(*found, 1e-11)


@pytest.mark.parametrize("implementation", ["fused", "plain"])
def test_dropout_is_pytorchs(implementation):
    options = {"num_layers": 3, "dropout": 0.4}
    theirs = randomized(nn.LSTM(5, 4, **options))
    ours = LayerNormLSTM(5, 4, variant="none", implementation=implementation, **options)
    ours.load_state_dict(theirs.state_dict())
    x = random_tensor(6, 3, 5, dtype=torch.float32)
    outputs = []
    for module in (ours, theirs):
        torch.manual_seed(0)
        outputs.append(module(x)[0])
    assert_all_close(outputs[:1], outputs[1:], 1e-6)
    assert float((outputs[0] - ours.eval()(x)[0]).detach().abs().max()) > 1e-3
    assert_all_close([ours(x)[0]], [theirs.eval()(x)[0]], 1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
def test_dropout_acts_between_layers_alone(variant):
    lstm = randomized(LayerNormLSTM(5, 4, 2, dropout=1.0, variant=variant))
    x = random_tensor(6, 3, 5, dtype=torch.float32)
    output, (h_n, _) = lstm(x)
    # The second layer gets only zeros; the first layer's states and the output aren't dropped.
    h = lstm.cell(1)(torch.zeros(3, 4))[0]
    assert bool((h != 0.0).all())
    assert_all_close([output[0]], [h], 1e-6)
    assert_all_close([lstm.eval()(x)[1][0][0]], [h_n[0]], 0.0)


def test_shapes_are_those_of_pytorch():
    for batch_first in (True, False):
        for bidirectional in (True, False):
            options = {"num_layers": 2, "batch_first": batch_first, "bidirectional": bidirectional}
            modules = LayerNormLSTM(5, 4, **options), nn.LSTM(5, 4, **options)
            for shape in ((6, 3, 5), (6, 5), (1, 1, 5), (2, 3, 5)):
                shapes = [
                    [t.shape for t in (output, *states)]
                    for output, states in (module(torch.ones(shape)) for module in modules)
                ]
                assert shapes[0] == shapes[1]
    empty = torch.ones(3, 0, 5, requires_grad=True)
    output, states = LayerNormLSTM(5, 4)(empty)
    assert output.shape == (3, 0, 4)
    assert states[0].shape == (1, 0, 4)
    output.sum().backward()


# Sequences


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("implementation", ["fused", "plain"])
@pytest.mark.usefixtures("loop")
def test_packed_sequences_are_as_each_alone(variant, implementation):
    options = {
        "num_layers": 2,
        "bidirectional": True,
        "variant": variant,
        "implementation": implementation,
    }
    lstm = randomized(LayerNormLSTM(5, 4, dtype=torch.float64, **options))
    sequences = [random_tensor(length, 5, seed=length) for length in (2, 6, 1, 4)]
    h, c = (random_tensor(4, 4, 4, seed=s) for s in (2, 3))
    packed = pack_sequence(sequences, enforce_sorted=False)
    output, (h_n, c_n) = lstm(packed, (h, c))
    padded, lengths = pad_packed_sequence(output)
    assert lengths.tolist() == [2, 6, 1, 4]
    for place, sequence in enumerate(sequences):
        alone, states = lstm(sequence, (h[:, place], c[:, place]))
        assert_all_close([padded[: len(sequence), place]], [alone], 1e-11)
        assert_all_close([h_n[:, place], c_n[:, place]], states, 1e-11)
    for state in (torch.zeros(4, 4, 4, dtype=torch.float64),):
        assert_all_close([lstm(packed)[0].data], [lstm(packed, (state, state))[0].data], 0.0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_two_halves_of_a_sequence_are_the_whole(variant):
    lstm = randomized(LayerNormLSTM(5, 4, 2, variant=variant, dtype=torch.float64))
    x = random_tensor(7, 3, 5)
    whole, ends = lstm(x)
    first, states = lstm(x[:3])
    second, others = lstm(x[3:], states)
    assert_all_close([torch.cat([first, second]), *others], [whole, *ends], 1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_way_back_is_the_way_there_of_the_reversed_sequence(variant):
    lstm = randomized(LayerNormLSTM(5, 4, bidirectional=True, variant=variant).double())
    one = LayerNormLSTM(5, 4, variant=variant, dtype=torch.float64)
    state = lstm.cell(0, reverse=True).state_dict()
    one.load_state_dict({f"{name}_l0": value for name, value in state.items()})
    x = random_tensor(6, 3, 5)
    output, (h_n, _) = lstm(x)
    backward, (h_back, _) = one(x.flip(0))
    assert_all_close([output[..., 4:], h_n[1:]], [backward.flip(0), h_back], 1e-12)


def test_states_given_are_not_changed():
    for implementation in ("fused", "plain"):
        lstm = randomized(LayerNormLSTM(5, 4, 2, implementation=implementation))
        h, c = (random_tensor(2, 3, 4, seed=s, dtype=torch.float32) for s in (2, 3))
        x = random_tensor(6, 3, 5, dtype=torch.float32)
        copies = [tensor.clone() for tensor in (x, h, c)]
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                states = [h, c]
                _, (h_n, c_n) = lstm(x, states)
            assert states[0] is h
            assert states[1] is c
            assert all(torch.equal(a, b) for a, b in zip((x, h, c), copies, strict=True))
            h_n.detach().zero_(), c_n.detach().zero_()
            assert all(torch.equal(a, b) for a, b in zip((x, h, c), copies, strict=True))


def test_batch_first_concerns_input_and_output_alone():
    time_first = randomized(LayerNormLSTM(5, 4, 2))
    batch_first = LayerNormLSTM(5, 4, 2, batch_first=True)
    batch_first.load_state_dict(time_first.state_dict())
    x = random_tensor(6, 3, 5, dtype=torch.float32)
    h, c = (random_tensor(2, 3, 4, seed=s, dtype=torch.float32) for s in (2, 3))
    expected, states = time_first(x, (h, c))
    output, others = batch_first(x.transpose(0, 1), (h, c))
    assert_all_close([output.transpose(0, 1), *others], [expected, *states], 0.0)
    assert_all_close([batch_first(x[:, 0])[0]], [time_first(x[:, 0])[0]], 0.0)


# Dtypes


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("implementation", ["fused", "plain"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_rounds_each_layer_once(variant, implementation, dtype):
    lstm = randomized(
        LayerNormLSTM(8, 16, variant=variant, implementation=implementation, dtype=dtype), scale=0.3
    )
    x = random_tensor(12, 4, 8, dtype=dtype)
    output, (h_n, c_n) = lstm(x)
    exact = copy.deepcopy(lstm).double()(x.double())
    for found, other in zip((output, h_n, c_n), (exact[0], *exact[1]), strict=True):
        assert found.dtype == dtype
        error = (found.double() - other).abs()
        assert bool((error <= 0.5 * torch.finfo(dtype).eps * other.abs() + 2e-5).all())
    output.float().square().sum().backward()
    assert all(parameter.grad.dtype == dtype for parameter in lstm.parameters())


@pytest.mark.parametrize(
    ("variant", "step"),
    [("ba", ba_step), ("per-gate", per_gate_step), ("carried", carried_step)],
)
def test_the_eps_of_a_step_that_is_given_none(variant, step):
    x, h, c, parameters = layer_case(variant, [3])
    small = [1e-3 * tensor for tensor in (x, h, c)]
    found, expected = step(*small, parameters), step(*small, parameters, 1e-5)
    assert all(torch.equal(*pair) for pair in zip(found, expected, strict=True))


def test_autocast_may_mix_dtypes_of_floats_in_a_step():
    x, h, c, parameters = layer_case("ba", [3], dtype=torch.float32)
    expected = ba_step(x, h.bfloat16().float(), c, parameters)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ba_step(x, h.bfloat16(), c, parameters)[0]
        with pytest.raises(RuntimeError, match="expected h to have the dtype .*float32"):
            ba_step(x, h.long(), c, parameters)
    assert torch.allclose(found.float(), expected, atol=0.05)
    with pytest.raises(RuntimeError, match="expected h to have the dtype .*float32"):
        ba_step(x, h.bfloat16(), c, parameters)


@pytest.mark.parametrize("run", [plain_layer, fused_layer])
def test_a_layer_mixes_no_dtypes_under_autocast(run):
    rows, h, c, parameters = layer_case("ba", EQUAL, dtype=torch.float32)
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(RuntimeError, match=f"{run.__name__}: expected h .*float32"),
    ):
        run("ba", rows, EQUAL, h.bfloat16(), c, parameters)


# Construction


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("bias", [True, False])
def test_first_values(variant, bias):
    torch.manual_seed(0)
    lstm = LayerNormLSTM(1, 64, 2, bias, variant=variant, bidirectional=True)
    forget_bias = {"per-gate": "norm_gates_bias", "none": "bias_ih"}.get(variant, "bias_gates")
    names = [name for name, _ in lstm.named_parameters()]
    assert any("bias" in name for name in names) == bias
    for name, parameter in lstm.named_parameters():
        if parameter.ndim == 2:
            bound = parameter.shape[1] ** -0.5
            assert float(parameter.detach().abs().max()) <= bound
            assert abs(float(parameter.detach().std()) - bound * 3.0**-0.5) < 0.1 * bound
            continue
        if "weight" in name:
            expected = torch.ones_like(parameter)
        else:
            expected = torch.zeros_like(parameter)
            if name.startswith(forget_bias):
                expected[64:128] = 1.0
        assert torch.equal(parameter, expected), name
    assert (
        LayerNormLSTM(3, 2, forget_bias=-2.5).bias_gates_l0.tolist() == [0, 0, -2.5, -2.5] + [0] * 4
    )
    assert (
        list(LayerNormLSTMCell(3, 2, variant="per-gate", forget_bias=0.0).norm_gates_bias)
        == [0.0] * 8
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_cell_begins_a_lone_sequence_with_zeros(variant):
    cell = randomized(LayerNormLSTMCell(5, 4, variant=variant, dtype=torch.float64))
    x = torch.linspace(-1.0, 2.0, 5, dtype=torch.float64)
    zeros = torch.zeros(1, 4, dtype=torch.float64)
    for alone, one, given in zip(
        cell(x), cell(x[None]), cell(x[None], (zeros, zeros)), strict=True
    ):
        assert alone.shape == (4,)
        torch.testing.assert_close(alone, one[0])
        torch.testing.assert_close(one, given)


@pytest.mark.parametrize("variant", VARIANTS)
def test_names_and_shapes(variant):
    lstm = LayerNormLSTM(5, 4, 2, variant=variant, bidirectional=True)
    shapes = {name: tuple(p.shape) for name, p in lstm.state_dict().items()}
    expected = {}
    for layer, width in ((0, 5), (1, 8)):
        for way in ("", "_reverse"):
            for name, shape in parameter_shapes(variant, width, 4, True).items():
                expected[f"{name}_l{layer}{way}"] = shape
    assert shapes == expected
    assert not list(lstm.buffers())
    cell = LayerNormLSTMCell(5, 4, variant=variant)
    assert list(cell.state_dict()) == list(parameter_shapes(variant, 5, 4, True))


def test_a_layer_as_a_cell_shares_its_parameters():
    lstm = randomized(LayerNormLSTM(5, 4, 2, bidirectional=True, variant="per-gate", eps=0.1))
    cell = lstm.cell(1, reverse=True)
    assert (cell.input_size, cell.hidden_size, cell.variant, cell.eps) == (8, 4, "per-gate", 0.1)
    assert cell.weight_hh is lstm.weight_hh_l1_reverse
    assert len(list(cell.parameters())) == 6
    for arguments in ((2,), (-1,), (0.5,)):
        with pytest.raises(IndexError, match="layer from 0 to 1"):
            lstm.cell(*arguments)
    with pytest.raises(IndexError, match="only if bidirectional"):
        LayerNormLSTM(5, 4).cell(0, reverse=True)


def test_printing_and_devices():
    assert repr(LayerNormLSTMCell(5, 4, False, variant=None)) == (
        "LayerNormLSTMCell(5, 4, bias=False, variant='none')"
    )
    options = {"bias": False, "batch_first": True, "dropout": 0.5, "bidirectional": True}
    assert repr(LayerNormLSTM(np.int64(5), 4, 2, **options)) == (
        "LayerNormLSTM(5, 4, num_layers=2, bias=False, batch_first=True, dropout=0.5, "
        "bidirectional=True, variant='ba')"
    )
    assert LayerNormLSTM(5, 4, device="meta").weight_ih_l0.device.type == "meta"
    assert LayerNormLSTMCell(5, 4, device="meta", dtype=torch.float64).weight_ih.is_meta


def test_arguments_are_shown_only_where_they_are_not_the_default():
    assert repr(LayerNormLSTM(5, 4)) == "LayerNormLSTM(5, 4, variant='ba')"
    assert repr(LayerNormLSTM(5, 4, implementation="plain")).endswith("implementation='plain')")


def test_useless_dropout_warns():
    with pytest.warns(UserWarning, match="dropout=0.5 has no effect with num_layers=1"):
        LayerNormLSTM(3, 5, dropout=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LayerNormLSTM(3, 5, 2, dropout=0.5)
