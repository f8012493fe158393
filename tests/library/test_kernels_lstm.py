"""The compiled time loop: functions, products, gradients, threads, and where it doesn't run."""

import re
import warnings

import numpy as np
import pytest
import torch
from numba import njit
from torch.utils._python_dispatch import TorchDispatchMode

from lnbook.kernels.cpu import _compile, _products, _vector_math, lstm
from lnbook.recurrent import LayerNormLSTM, fused, fused_layer, plain_layer
from lnbook.reference import lstm as reference
from tests.helpers.recurrent import assert_all_close, layer_case, results_and_gradients

VARIANTS = ["ba", "per-gate", "carried"]
# Batch sizes, input size, hidden size: one block of rows and several, shrinking batches, wide and
# narrow inputs, sizes that fill panels and tiles and sizes that don't.
CASES = [
    ([1], 1, 1),
    ([3, 3, 2, 1, 1], 2, 3),
    ([16] * 11, 1, 32),
    ([9, 9, 8, 7, 1], 10, 40),
    ([70, 70, 65, 3], 33, 17),
    ([140] * 2, 7, 5),
]
TOLERANCES = {torch.float64: 1e-11, torch.float32: 2e-4}


# Sigmoid and tanh


@njit(fastmath=_compile.ANY_ORDER, error_model="numpy")
def sigmoids(x, y):
    for i in range(len(x)):
        y[i] = _vector_math.sigmoid(x[i])


@njit(fastmath=_compile.ANY_ORDER, error_model="numpy")
def tanhs(x, y):
    for i in range(len(x)):
        y[i] = _vector_math.tanh(x[i])


def numbers_of_all_sizes(dtype):
    """Return numbers from the smallest denormal to the largest number, of both signs."""
    info = np.finfo(dtype)
    least, most = np.log10([float(info.smallest_subnormal) * 2, float(info.max) / 2])
    positive = np.concatenate(
        [np.linspace(0.0, 12.0, 200_001), np.linspace(12.0, 720.0, 50_001), [info.max]]
    )
    positive = np.append(positive, 10.0 ** np.linspace(least, most, 100_001)).astype(dtype)
    return np.concatenate([-positive, positive])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("kernel", "exact"), [(sigmoids, lambda x: 1 / (1 + np.exp(-x))), (tanhs, np.tanh)]
)
def test_sigmoid_and_tanh_have_errors_of_a_few_last_bits(kernel, exact, dtype):
    x = numbers_of_all_sizes(dtype)
    y = np.empty_like(x)
    kernel(x, y)
    with np.errstate(over="ignore", under="ignore"):
        expected = exact(x.astype(np.longdouble))
        rounded = np.abs(expected).astype(dtype)
    last_bit = np.maximum(np.spacing(rounded), np.finfo(dtype).smallest_subnormal)
    errors = np.abs(y - expected) / last_bit
    # tanh of a denormal is that same denormal, so it's exact; a denormal sigmoid may become zero.
    normal = np.abs(expected) > 1.5 * np.finfo(dtype).tiny
    assert float(errors[normal].max()) < 3.0
    small = np.abs(y - expected)[~normal]
    assert float(small.max()) <= (2 * np.finfo(dtype).tiny if kernel is sigmoids else 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sigmoid_and_tanh_of_special_values(dtype):
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], dtype)
    y = np.empty_like(x)
    sigmoids(x, y)
    np.testing.assert_array_equal(y, np.array([1.0, 0.0, np.nan, 0.5, 0.5], dtype))
    tanhs(x, y)
    np.testing.assert_array_equal(y, np.array([1.0, -1.0, np.nan, 0.0, -0.0], dtype))
    np.testing.assert_array_equal(np.signbit(y[3:]), [False, True])


@pytest.mark.parametrize("kernel", [sigmoids, tanhs])
@pytest.mark.parametrize(("dtype", "integer"), [(np.float32, "i32"), (np.float64, "i64")])
def test_loops_over_them_become_vector_instructions(kernel, dtype, integer):
    x = np.zeros(64, dtype)
    kernel(x, x.copy())
    code = "".join(kernel.inspect_llvm().values())
    # Powers of two are assembled from bits; in a vectorized loop, several at a time.
    assert re.search(rf"shl [a-z ]*<\d+ x {integer}>", code)


# Products

product_of = njit(error_model="numpy")(
    lambda *given: _products.product(*given)  # called from compiled code, as in a job
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(1, 1, 1), (3, 5, 40), (8, 2, 32), (23, 7, 65)]
)
@pytest.mark.parametrize("adds", [False, True])
def test_products_are_matrix_products(dtype, rows, depth, columns, adds):
    rng = np.random.default_rng(0)
    a = torch.tensor(rng.standard_normal((rows, depth))).to(dtype)
    b = torch.tensor(rng.standard_normal((depth, columns))).to(dtype)
    panels = lstm._in_panels(b)
    width = len(panels) * panels.shape[2]
    c = torch.tensor(rng.standard_normal((rows + 1, width + 3))).to(dtype)
    expected = c.clone()
    expected[1:, 2 : 2 + width] *= float(adds)
    expected[1:, 2 : 2 + columns] += a @ b
    left = torch.cat((torch.ones(rows, 2, dtype=dtype), a), 1).flatten()
    product_of(
        left.numpy(), 2, depth + 2, rows, panels.flatten().numpy(), depth,
        c.view(-1).numpy(), width + 3 + 2, width + 3, width, adds,
    )  # fmt: skip
    torch.testing.assert_close(c, expected)


# The layer


@pytest.fixture
def calls(monkeypatch):
    """Count the calls to the kernel, since the tests would also pass with the fallback."""
    made = []
    run = _compile.run
    monkeypatch.setattr(
        _compile,
        "run",
        lambda job, numbers, threads: (made.append(threads), run(job, numbers, threads)),
    )
    return made


@pytest.fixture
def threads():
    """Let a test set the number of threads."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("count", [1, 2])
def test_the_kernel_is_the_plain_loop(
    variant, case, dtype, bias, count, calls, threads, monkeypatch
):
    monkeypatch.setattr(lstm, "WORTH_A_THREAD", 0)
    threads(count)
    given = layer_case(variant, *case, dtype, bias)
    found = results_and_gradients(fused_layer, variant, case[0], given)
    assert calls == [min(count, -(-case[0][0] // 8))] * 2
    expected = results_and_gradients(plain_layer, variant, case[0], given)
    assert_all_close(found, expected, TOLERANCES[dtype])
    with torch.no_grad():
        alone = fused_layer(variant, given[0], case[0], *given[1:])
    assert all(torch.equal(*pair) for pair in zip(alone, found, strict=False))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_kernel_is_the_reference(variant, calls):
    x, h, c, parameters = layer_case(variant, [5] * 6, 3, 20)
    given = {name: parameter.detach().numpy() for name, parameter in parameters.items()}
    results = fused_layer(variant, x, [5] * 6, h, c, parameters, 0.01)
    assert calls == [1]
    h, c, outputs = h.detach().numpy(), c.detach().numpy(), []
    for row in x.detach().numpy().reshape(6, 5, 3):
        h, c = reference.STEPS[variant](row, h, c, given, 0.01)
        outputs.append(h)
    for found, expected in zip(results, (np.concatenate(outputs), h, c), strict=True):
        np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_finite_differences(variant, calls):
    sizes = [3, 2, 2, 1]
    rows, h, c, parameters = layer_case(variant, sizes, 2, 3)

    def run(rows, h, c, *tensors):
        given = dict(zip(parameters, tensors, strict=True))
        return fused_layer(variant, rows, sizes, h, c, given, 0.1)

    inputs = (rows, h, c, *parameters.values())
    assert torch.autograd.gradcheck(run, inputs)
    assert len(calls) > 20
    assert torch.autograd.gradgradcheck(run, inputs, atol=1e-4, fast_mode=True)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("count", [1, 2])
def test_the_same_bits_every_time(variant, count, threads, monkeypatch):
    monkeypatch.setattr(lstm, "WORTH_A_THREAD", 0)
    threads(count)
    sizes = [40, 40, 33, 20]
    given = layer_case(variant, sizes, 9, 33, torch.float32)
    first = results_and_gradients(fused_layer, variant, sizes, given)
    for _ in range(5):
        again = results_and_gradients(fused_layer, variant, sizes, given)
        assert all(torch.equal(*pair) for pair in zip(first, again, strict=True))


@pytest.mark.parametrize("count", [1, 2])
def test_a_sequence_does_not_depend_on_the_others(count, threads, monkeypatch):
    monkeypatch.setattr(lstm, "WORTH_A_THREAD", 0)
    threads(count)
    x = torch.tensor(np.random.default_rng(0).standard_normal((5, 19, 3)), dtype=torch.float32)
    layer = LayerNormLSTM(3, 10, implementation="fused")
    x[2, 4] = np.nan
    x[1, 7] = np.inf
    output, _ = layer(x)
    for member in range(19):
        alone, _ = layer(x[:, member])
        torch.testing.assert_close(output[:, member], alone, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_special_values_are_those_of_the_plain_loop(variant, value, calls):
    sizes = [3, 3, 3]
    for place in range(3):  # the rows of the input, h and c
        given = layer_case(variant, sizes, 2, 4, torch.float32)
        with torch.no_grad():
            given[place][1, 1] = value
        found = results_and_gradients(fused_layer, variant, sizes, given)
        expected = results_and_gradients(plain_layer, variant, sizes, given)
        for tensor, other in zip(found, expected, strict=True):
            assert torch.equal(tensor.isnan(), other.isnan())
            torch.testing.assert_close(tensor, other, rtol=1e-3, atol=1e-3, equal_nan=True)
    assert len(calls) == 6


def test_epsilon_of_zero_gives_nan_where_it_does_in_the_plain_loop():
    given = layer_case("ba", [2, 2], 2, 4)
    with torch.no_grad():
        given[1].zero_()
    for run in (fused_layer, plain_layer):
        assert all(bool(r.isnan().all()) for r in run("ba", given[0], [2, 2], *given[1:], 0.0))


def test_upstream_gradients_may_have_any_strides(calls):
    given = layer_case("per-gate", [3, 3], 2, 4)
    inputs = [*given[:3], *given[3].values()]
    grads = []
    for upstream in (torch.ones(1, dtype=torch.float64).expand(6, 4), torch.ones(6, 4).double()):
        output, *_ = fused_layer("per-gate", given[0].t().contiguous().t(), [3, 3], *given[1:])
        grads.append(torch.autograd.grad(output, inputs, upstream))
    assert_all_close(*grads, 0.0)
    assert len(calls) == 4


# Where it doesn't run


class Watching(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.seen.add(str(function))
        return function(*args, **(kwargs or {}))


def test_whatever_watches_operations_sees_them(calls):
    layer, x = LayerNormLSTM(3, 4, implementation="fused"), torch.ones(5, 2, 3)
    with Watching() as mode:
        layer(x)
    assert "aten.native_layer_norm.default" in mode.seen
    torch.func.vmap(layer)(torch.ones(3, 5, 2, 3))
    assert not calls
    layer(x)
    assert calls == [1]


def test_forward_mode_differentiation_is_not_ignored_without_gradients(calls):
    layer, x = (
        LayerNormLSTM(3, 4, implementation="fused").requires_grad_(False),
        torch.ones(5, 2, 3),
    )
    forward_ad = torch.autograd.forward_ad
    with warnings.catch_warnings(), forward_ad.dual_level():
        warnings.simplefilter("ignore", DeprecationWarning)  # PyTorch's own, from TorchScript
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        with pytest.raises(RuntimeError, match="forward|out="):
            layer(dual)
    assert not calls


def test_a_layer_compiles_only_where_it_is_asked_to(calls):
    for implementation in ("auto", "plain"):
        LayerNormLSTM(3, 4, implementation=implementation)(torch.ones(5, 2, 3))
    assert not calls


def test_without_numba_it_says_so_once(monkeypatch, calls):
    monkeypatch.setattr(lstm, "is_available", lambda: False)
    fused._warn_once.cache_clear()
    case = layer_case("ba", [3, 3], 2, 4)
    with pytest.warns(UserWarning, match="Numba isn't installed.*pip install numba"):
        found = results_and_gradients(fused_layer, "ba", [3, 3], case)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results_and_gradients(fused_layer, "ba", [3, 3], case)
    assert not calls
    assert_all_close(found, results_and_gradients(plain_layer, "ba", [3, 3], case), 1e-11)
