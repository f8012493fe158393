"""The CPU kernels and operators, checked against float64 NumPy, PyTorch and plain functions."""

import itertools
import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional as native
from torch.utils._python_dispatch import TorchDispatchMode

from lnbook import functional, reference
from lnbook.functional import LayerNormFunction, RMSNormFunction
from lnbook.kernels import cpu, operators
from lnbook.kernels.cpu import norms
from lnbook.layers import LayerNorm, RMSNorm
from tests.helpers.random_tensors import random_input, random_tensor, randomized

pytest.importorskip("numba")
_compile = pytest.importorskip("lnbook.kernels.cpu._compile")
from numba import njit  # noqa: E402

EPS = 0.3
DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
TOLERANCES = {
    torch.float64: 4e-15,
    torch.float32: 2e-6,
    torch.float16: 2**-10,
    torch.bfloat16: 2**-7,
}
SHAPES = [((6,), 1), ((5, 1), 1), ((37, 70), 1), ((2, 3, 5), 2), ((2, 1, 3, 17), 3), ((3, 1000), 1)]


@pytest.fixture(params=["small", "past the cache", "three threads", "three pool threads"])
def way(request, monkeypatch):
    """Every way a kernel can run, including those for large inputs."""
    if request.param == "past the cache":
        monkeypatch.setattr(norms, "CACHE", 0)
    if "threads" in request.param:
        monkeypatch.setattr(norms, "SHARED", 0)
        monkeypatch.setattr(norms, "PIECE_HEIGHT", 1)
        monkeypatch.setattr(torch, "get_num_threads", lambda: 3)
    if "pool" in request.param:
        monkeypatch.setattr(_compile, "_openmp", lambda: None)
    return request.param


def random_case(shape, dims=1, dtype=torch.float32, parameter_dtype=None, seed=0):
    """Return x with a nonzero mean, weight, bias and upstream gradient."""
    normalized = shape[-dims:]
    x = random_input(shape, dtype, seed=seed)
    weight, bias = (
        random_tensor(*normalized, dtype=parameter_dtype or dtype, seed=seed + k) for k in (1, 2)
    )
    return x, weight, bias, random_tensor(*shape, dtype=dtype, seed=seed + 3)


def run(norm, x, shape, parameters, grad):
    """Return the results of both passes of a norm in `cpu`."""
    y, statistics = getattr(cpu, f"{norm}_forward")(x, shape, *parameters, EPS)
    backward = getattr(cpu, f"{norm}_backward")
    return y, *backward(grad, x, shape, parameters[0], statistics, EPS)


def exact(norm, x, shape, parameters, grad):
    x, grad, *parameters = (
        None if t is None else t.double().numpy() for t in (x, grad, *parameters)
    )
    y = getattr(reference, norm)(x, shape, *parameters, EPS)
    return y, *getattr(reference, f"{norm}_backward")(grad, x, shape, parameters[0], EPS)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize(("shape", "dims"), SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("wide", [False, True], ids=["own", "wide"])
def test_kernels_equal_numpy(norm, shape, dims, dtype, wide, way):
    wide_dtype = torch.promote_types(dtype, torch.float32)
    x, weight, bias, grad = random_case(shape, dims, dtype, wide_dtype if wide else dtype)
    weights, biases = (weight, None), (bias, None)
    given = itertools.product(weights, biases) if norm == "layer_norm" else zip(weights)
    for parameters in given:
        results = run(norm, x, shape[-dims:], parameters, grad)
        expected = exact(norm, x, shape[-dims:], parameters, grad)
        for found, right in zip(results, expected, strict=True):
            assert found.shape == right.shape
            # A gradient can be a difference of terms near 1.
            tolerance = TOLERANCES[found.dtype] * max(np.abs(right).max(), 1.0)
            np.testing.assert_allclose(found.double().numpy(), right, rtol=0, atol=tolerance)
        assert [t.dtype for t in results] == [dtype, dtype, *[wide_dtype] * (len(results) - 2)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 3, 67])  # the backward pass splits 67 rows into 64 and 3
def test_rows_are_right_alone_and_after_others(rows, dtype, way):
    width = 517
    x, weight, bias, grad = random_case((rows, width), 1, dtype)
    x[-1], grad[-1] = 3 * x[-1] + 1, -4 * grad[-1]  # unlike its neighbor
    results = run("layer_norm", x, (width,), (weight, bias), grad)
    expected = exact("layer_norm", x, (width,), (weight, bias), grad)
    for found, right in zip(results, expected, strict=True):
        tolerance = TOLERANCES[found.dtype] * max(np.abs(right).max(), 1.0)
        np.testing.assert_allclose(found.double().numpy(), right, rtol=0, atol=tolerance)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
def test_a_row_is_not_mixed_with_the_next_one(norm):
    x, weight, _, grad = random_case((5, 100))
    grad[1], grad[4] = np.nan, np.nan
    parameters = (weight, None)[: 2 if norm == "layer_norm" else 1]
    dx = run(norm, x, (100,), parameters, grad)[1]
    assert dx.isnan().all(1).tolist() == [False, True, False, False, True]
    assert not dx[[0, 2, 3]].isnan().any()


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("shape", [(1000, 48), (300, 1000), (131, 512)])
def test_the_number_of_threads_changes_no_bit(norm, shape, monkeypatch):
    monkeypatch.setattr(norms, "SHARED", 0)
    x, weight, bias, grad = random_case(shape)
    parameters = (weight, bias)[: 2 if norm == "layer_norm" else 1]
    results = []
    for threads in (1, 1, 2, 3, 7):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        results.append(run(norm, x, shape[1:], parameters, grad))
    assert all(all(map(torch.equal, results[0], other)) for other in results[1:])


def test_threads_are_those_of_torch(monkeypatch):
    used = []
    kernel = _compile.run
    monkeypatch.setattr(_compile, "run", lambda *given: (used.append(given[2]), kernel(*given)))
    x, weight, bias, _ = random_case((2**10, 2**6))
    for threads in (1, 2):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        LayerNormFunction.apply(x, (64,), weight, bias)
        LayerNormFunction.apply(x[1:], (64,), weight, bias)
        LayerNormFunction.apply(x.view(1, -1), (2**16,))
    assert used == [1, 1, 1, 2, 1, 1]


def test_a_large_result_is_written_past_the_cache(monkeypatch):
    jobs = []
    kernel = _compile.run
    monkeypatch.setattr(_compile, "run", lambda *given: (jobs.append(given[1]), kernel(*given)))
    for rows in (2**12, 2**12 + 1):
        RMSNormFunction.apply(torch.ones(rows, 2**10), (2**10,))
    assert [numbers[4] for numbers in jobs] == [False, True]


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [12, 100, 20000])
def test_special_rows_are_those_of_the_plain_function(past, dtype, width, monkeypatch):
    monkeypatch.setattr(norms, "CACHE", 0 if past else 2**24)
    base, largest = np.random.default_rng(3).standard_normal(width), torch.finfo(dtype).max
    far = 1 / torch.finfo(dtype).eps / 8  # a mean whose last bit is worth 1/8 of the deviation
    rows = [np.full(width, 0.1), np.full(width, -largest / width / 2), np.zeros(width)]
    rows += [base + far, 1e3 * base + far, np.where(np.arange(width) == 3, np.nan, base)]
    rows += [np.where(np.arange(width) == 5, np.inf, base), np.full(width, largest)]
    rows += [base * largest**0.6, base * 1e-30]
    x = torch.tensor(np.array(rows)).to(dtype)
    _, weight, bias, grad = random_case(x.shape, dtype=dtype)
    tolerance = 4 * TOLERANCES[dtype]
    for eps in (0.0, 1e-5):
        y, statistics = cpu.layer_norm_forward(x, (width,), weight, bias, eps)
        dx, *_ = cpu.layer_norm_backward(grad, x, (width,), weight, statistics, eps)
        expected = functional.layer_norm(x, (width,), weight, bias, eps)
        expected_dx, *_ = functional.layer_norm_backward(grad, x, (width,), weight, eps)
        for found, right in ((y, expected), (dx, expected_dx)):
            defined = ~expected.isinf().any(1)  # without eps, the last variance underflows
            assert torch.equal(found.isnan()[defined], right.isnan()[defined])
            for one, other in zip(found[defined], right[defined], strict=True):
                scale = float(other.nan_to_num().abs().max())
                torch.testing.assert_close(
                    one, other, rtol=0, atol=scale * tolerance, equal_nan=True
                )
        if eps:
            assert all(torch.equal(y[i], bias) for i in range(3))
        else:
            assert y[:3].isnan().all()
        root, _ = cpu.rms_norm_forward(x, (width,), weight, eps)
        right = functional.rms_norm(x, (width,), weight, eps)
        torch.testing.assert_close(root, right, rtol=2 * tolerance, atol=0, equal_nan=True)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (0, 0), (2, 0, 3)])
def test_empty_inputs_have_empty_results_and_zero_sums(norm, shape, way):
    x = torch.ones(shape)
    y, dx, *sums = run(norm, x, shape[-1:], [None, None][: 2 if norm == "layer_norm" else 1], x)
    assert y.shape == dx.shape == shape
    assert all(torch.equal(total, torch.zeros(shape[-1:])) for total in sums)


# 16-bit floats


@njit
def widened(values):
    found = np.empty(len(values), np.float32)
    for i in range(len(values)):
        found[i] = _compile.widen(values[i])
    return found


@njit
def narrowed(values, like):
    found = np.empty(len(values), like.dtype)
    for i in range(len(values)):
        found[i] = _compile.narrow(values[i], like[0])
    return found


HALVES = [(torch.bfloat16, np.uint16), (torch.float16, np.int16)]


@pytest.mark.parametrize(("dtype", "bits"), HALVES)
def test_every_16_bit_float_is_widened_as_torch_does(dtype, bits):
    every = np.arange(2**16).astype(np.uint16)
    expected = torch.tensor(every.view(np.int16)).view(dtype).float().numpy()
    np.testing.assert_array_equal(widened(every.view(bits)), expected)


@pytest.mark.parametrize(("dtype", "bits"), HALVES)
def test_numbers_are_rounded_to_16_bits_as_torch_does(dtype, bits):
    every = torch.tensor(np.arange(2**16).astype(np.uint16).view(np.int16)).view(dtype).float()
    every = every[every.isfinite()].unique().numpy()
    ties = (every[1:] / 2 + every[:-1] / 2).astype(np.float32)
    any_bits = np.random.default_rng(0).integers(0, 2**32, 200_000).astype(np.uint32)
    given = np.concatenate(
        [
            every,
            ties,
            *(np.nextafter(ties, np.float32(end)) for end in (1e38, -1e38)),
            any_bits.view(np.float32),
            np.array([-0.0, 65519.99, 65520, np.inf, -np.inf, np.nan], np.float32),
        ]
    )
    found = torch.tensor(narrowed(given, np.zeros(1, bits)).view(np.int16)).view(dtype)
    expected = torch.tensor(given).to(dtype)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


# PyTorch's own samples


# PyTorch's test tools need the package expecttest, but only for comparing long texts. They run in a
# separate process, because importing them changes torch's settings.
SAMPLES = """
import sys, types, unittest
from importlib.util import find_spec
if find_spec("expecttest") is None:
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
import torch
from torch.testing._internal.common_methods_invocations import op_db
found = {
    (norm, dtype): [
        (sample.input.detach(), [t.detach() if isinstance(t, torch.Tensor) else t
                                 for t in sample.args], sample.kwargs)
        for info in op_db if info.name == f"nn.functional.{norm}"
        for sample in info.sample_inputs("cpu", dtype, requires_grad=True)
    ]
    for norm in ("layer_norm", "rms_norm")
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64)
}
torch.save(found, sys.argv[1])
"""


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    path = tmp_path_factory.mktemp("samples") / "samples.pt"
    subprocess.run([sys.executable, "-W", "ignore", "-c", SAMPLES, path], check=True)
    return torch.load(path, weights_only=False)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("implementation", ["function", "auto", "native", "fused", "plain"])
def test_the_samples_of_pytorch_pass(norm, dtype, implementation, samples):
    assert len(samples[norm, dtype]) > 5
    for input, args, options in samples[norm, dtype]:
        if (options.get("eps") or 0) < 0:
            with pytest.raises(ValueError, match="expected eps to be finite and at least 0"):
                call(norm, implementation, (input, *args), options)
        else:
            check_sample(norm, implementation, (input, *args), options)


def check_sample(norm, implementation, sample, options):
    def arguments(dtype):
        return [t.to(dtype).requires_grad_() if isinstance(t, torch.Tensor) else t for t in sample]

    dtype = sample[0].dtype
    given, wide = arguments(dtype), arguments(torch.float64)
    y = call(norm, implementation, given, options)
    if norm == "rms_norm" and options.get("eps") is None:
        options = {"eps": torch.finfo(torch.promote_types(dtype, torch.float32)).eps}
    right = getattr(native, norm)(*wide, **options)
    assert y.dtype == dtype
    upstream = random_tensor(*y.shape, dtype=dtype)
    inputs = [[t for t in tensors if isinstance(t, torch.Tensor)] for tensors in (given, wide)]
    found = torch.autograd.grad(y, inputs[0], upstream)
    expected = torch.autograd.grad(right, inputs[1], upstream.double())
    # A gradient can be a difference of much larger terms.
    terms = largest_term(wide, norm, options.get("eps", 1e-5), upstream)
    loose = implementation == "native" or (norm, implementation) == ("layer_norm", "auto")
    for ours, other in zip((y.detach(), *found), (right.detach(), *expected), strict=True):
        scale = max(float(other.abs().max()), terms) if other.numel() else 1.0
        # PyTorch rounds more often.
        tolerance = (16 if loose else 4) * torch.finfo(dtype).eps * scale
        torch.testing.assert_close(ours.double(), other, rtol=0, atol=tolerance)


def largest_term(arguments, norm, eps, upstream):
    """A bound on the terms of the gradients: the largest r times g, and at least 1."""
    x, shape, weight = (*arguments, None)[:3]
    rows = x.detach().reshape(-1, int(np.prod(shape)))
    if not rows.numel():
        return 1.0
    variance = rows.var(1, correction=0) if norm == "layer_norm" else rows.square().mean(1)
    g = float(upstream.abs().max()) * (
        1.0 if weight is None else float(weight.detach().abs().max())
    )
    return max(1.0, g * float((variance + eps).rsqrt().max()))


def call(norm, implementation, given, options):
    input, shape, *parameters = given
    layer_norm = norm == "layer_norm"
    if implementation == "function":
        function = LayerNormFunction if layer_norm else RMSNormFunction
        return function.apply(input, shape, *parameters, **options)
    weight, bias = (*parameters, None, None)[:2]
    layer = (LayerNorm if layer_norm else RMSNorm)(
        shape, **options, elementwise_affine=False, implementation=implementation
    )
    layer.weight = layer.bias = None  # so that plain tensors can take their place
    object.__setattr__(layer, "_parameters", {"weight": weight, "bias": bias})
    return layer(input)


# Operators


def operator_calls(requires_grad=True, dtype=torch.float32):
    """The four operators, with arguments."""
    x, weight, bias, grad = random_case((3, 4, 6), 1, dtype)
    x, weight, bias = (t.requires_grad_(requires_grad) for t in (x, weight, bias))
    layer_statistics = cpu.layer_norm_forward(x.detach(), (6,), weight.detach(), None, EPS)[1]
    root_statistics = cpu.rms_norm_forward(x.detach(), (6,), None, EPS)[1]
    detached = (x.detach(), [6], weight.detach())
    return {
        operators.layer_norm_operator: (x, [6], weight, bias, EPS),
        operators.rms_norm_operator: (x, [6], weight, EPS),
        operators.layer_norm_backward_operator: (grad, *detached, layer_statistics, EPS),
        operators.rms_norm_backward_operator: (grad, *detached, root_statistics, EPS),
    }


# Whether an operator is registered correctly doesn't depend on the dtype, so two of them do.
@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_operators_pass_opcheck(number, dtype):
    operator, given = list(operator_calls(dtype=dtype).items())[number]
    torch.library.opcheck(operator, given)


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("has_weight", [True, False])
def test_operators_have_first_and_second_derivatives(norm, has_weight):
    x, weight, bias, _ = random_case((3, 5), 1, torch.float64)
    inputs = [x, weight if has_weight else None, bias][: 3 if norm == "layer_norm" else 2]
    inputs = [None if t is None else t.requires_grad_() for t in inputs]
    operator = getattr(operators, f"{norm}_operator")

    def y(input, *parameters):
        return operator(input, (5,), *parameters, EPS)[0]

    assert torch.autograd.gradcheck(y, inputs)
    assert torch.autograd.gradgradcheck(y, inputs)


def test_the_backward_operators_refuse_to_be_differentiated():
    for operator, given in list(operator_calls(requires_grad=False).items())[2:]:
        first, *rest = given
        found = operator(first.requires_grad_(), *rest)
        with pytest.raises(RuntimeError, match="no autograd formula was registered"):
            found[0].sum().backward()


LAYERS = [(LayerNorm, ("weight", "bias")), (RMSNorm, ("weight",))]


def both_passes(layer, x, upstream):
    x = x.detach().requires_grad_()
    y = layer(x)
    return y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], upstream)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_a_compiled_layer_contains_the_operator(kind):
    layer = randomized(kind((4, 6), implementation="fused"))
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    name = {LayerNorm: "layer_norm", RMSNorm: "rms_norm"}[kind]
    compiled = torch.compile(layer, backend=backend, fullgraph=True)
    compiled(random_input((3, 4, 6)))
    targets = {str(node.target) for node in graphs[0].graph.nodes}
    assert f"lnbook.{name}.default" in targets or f"lnbook.{name}" in targets
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    for rows in (3, 5, 7):
        x, upstream = random_input((rows, 4, 6)), random_tensor(rows, 4, 6, dtype=torch.float32)
        for found, right in zip(
            both_passes(compiled, x, upstream), both_passes(layer, x, upstream), strict=True
        ):
            assert torch.equal(found, right)
    torch._dynamo.reset()


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
@pytest.mark.parametrize("implementation", ["auto", "native", "fused", "plain"])
def test_a_layer_compiles_with_dynamic_numbers(kind, implementation):
    # With dynamic=True, eps is a symbol during the checks, not a number.
    layer = randomized(kind(6, eps=EPS, implementation=implementation))
    torch._dynamo.reset()
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True, dynamic=True)
    for rows in (3, 5):
        x, upstream = random_input((rows, 6)), random_tensor(rows, 6, dtype=torch.float32)
        for found, right in zip(
            both_passes(compiled, x, upstream), both_passes(layer, x, upstream), strict=True
        ):
            torch.testing.assert_close(found, right, rtol=1e-6, atol=1e-6)
    torch._dynamo.reset()


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_an_exported_layer_contains_the_operator(kind, tmp_path):
    layer, x = randomized(kind(6, implementation="fused")), random_input((3, 6))
    rows = torch.export.Dim("rows")
    program = torch.export.export(layer, (x,), dynamic_shapes=({0: rows},))
    targets = {str(node.target) for node in program.graph.nodes}
    assert any(target.startswith("lnbook.") for target in targets)
    torch.export.save(program, tmp_path / "layer.pt2")
    loaded = torch.export.load(tmp_path / "layer.pt2").module()
    for count in (3, 8):
        x = random_input((count, 6))
        assert torch.equal(loaded(x), layer(x))


def test_automatic_layers_are_exported_without_our_operators():
    for kind in (LayerNorm, RMSNorm):
        program = torch.export.export(kind(6), (random_input((3, 6)),))
        assert not [node for node in program.graph.nodes if "lnbook" in str(node.target)]


@pytest.mark.parametrize(("kind", "names"), LAYERS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_changes_nothing(kind, names, dtype):
    layer = randomized(kind(6, implementation="fused"))
    x, upstream = random_input((3, 6), dtype), random_tensor(3, 6, dtype=dtype)
    expected = both_passes(layer, x, upstream)
    with torch.autocast("cpu", torch.bfloat16):
        found = both_passes(layer, x, upstream)
        operator = getattr(
            operators, "layer_norm_operator" if "bias" in names else "rms_norm_operator"
        )
        y, _ = operator(x, [6], *(getattr(layer, n).detach() for n in names), layer.eps or 2**-23)
    assert all(map(torch.equal, found, expected))
    assert torch.equal(y, expected[0])


@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, None)])
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # one call per example
def test_vmap_runs_operators_one_by_one(norm, dims):
    count = 2 if norm == "layer_norm" else 1
    x, grad = random_tensor(2, 4, 4, 6)
    parameters = random_tensor(count, *(4, 6)[dims[1] is None :], seed=4)
    operator = getattr(operators, f"{norm}_operator")
    backward = getattr(operators, f"{norm}_backward_operator")

    def one(x, grad, *parameters):
        y, statistics = operator(x, [6], *parameters, EPS)
        return y, *backward(grad, x, [6], parameters[0], statistics, EPS)

    all_dims = (dims[0], dims[0], *[dims[1]] * count)
    tensors = (x, grad, *parameters)
    found = torch.vmap(one, all_dims)(*tensors)
    for index in range(4):
        picked = (
            tensor if dim is None else tensor.select(dim, index)
            for tensor, dim in zip(tensors, all_dims, strict=True)
        )
        for ours, right in zip(found, one(*picked), strict=True):
            torch.testing.assert_close(ours[index], right, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", [LayerNorm, RMSNorm])
def test_gradients_per_example(kind):
    layer = randomized(kind(6, implementation="fused"))
    x = random_input((5, 3, 6))
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(parameters, x):
        return torch.func.functional_call(layer, parameters, (x,)).square().sum()

    found = torch.vmap(torch.func.grad(loss), (None, 0))(parameters, x)
    for index in range(5):
        layer.zero_grad()
        layer(x[index]).square().sum().backward()
        for name, parameter in layer.named_parameters():
            torch.testing.assert_close(found[name][index], parameter.grad, rtol=1e-4, atol=1e-4)


# Tools that must see the operator


class Noted(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(str(function))
        return function(*args, **(kwargs or {}))


def test_dispatch_modes_see_the_operators():
    for kind, norm in ((LayerNorm, "layer_norm"), (RMSNorm, "rms_norm")):
        layer = randomized(kind(6, implementation="fused"))
        x, upstream = random_input((3, 6)), random_tensor(3, 6, dtype=torch.float32)
        with Noted() as noted:
            found = both_passes(layer, x, upstream)
        assert noted.names >= {f"lnbook.{norm}.default", f"lnbook.{norm}_backward.default"}
        assert all(map(torch.equal, found, both_passes(layer, x, upstream)))


def test_fake_tensors_get_shapes():
    with FakeTensorMode():
        layer = LayerNorm(6, implementation="fused")
        y, *grads = both_passes(layer, torch.ones(3, 6), torch.ones(3, 6))
    assert [tuple(t.shape) for t in (y, *grads)] == [(3, 6), (3, 6), (6,), (6,)]


def test_negated_views_and_zero_tensors_are_not_read_as_memory():
    x, grad = random_tensor(2, 3, 6)
    negated = torch._neg_view(x)
    assert negated.is_neg()
    expected = LayerNormFunction.apply(-x, (6,))
    assert torch.equal(LayerNormFunction.apply(negated, (6,)), expected)
    for function in (LayerNormFunction, RMSNormFunction):
        y = function.apply(x.clone().requires_grad_(), (6,))
        (zero,) = torch.autograd.grad(y, y.grad_fn.next_functions[0][0].variable, grad * 0)
        (found,) = torch.autograd.grad(
            function.apply(leaf := x.clone().requires_grad_(), (6,)),
            leaf,
            torch._efficientzerotensor(grad.shape, dtype=grad.dtype),
        )
        assert torch.equal(found, zero)


class Subclass(torch.Tensor):
    pass


def test_subclasses_go_through_the_operator():
    x = random_tensor(3, 6)
    with torch._C.DisableTorchFunctionSubclass():
        found = LayerNormFunction.apply(x.as_subclass(Subclass), (6,))
    assert torch.equal(found.as_subclass(torch.Tensor), LayerNormFunction.apply(x, (6,)))


def test_a_traced_module_computes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch.jit is deprecated, and doesn't record the checks
        for kind in (LayerNorm, RMSNorm):
            layer = randomized(kind(6, implementation="fused"))
            traced = torch.jit.trace(layer, random_input((3, 6)))
            x = random_input((5, 6), seed=9)
            torch.testing.assert_close(traced(x), layer(x), rtol=5e-6, atol=5e-6)


# Without Numba, and without a folder for its cache


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_importing_lnbook_imports_neither_numba_nor_triton():
    code = "import sys, lnbook.layers, lnbook.recurrent, lnbook.kernels.operators\n"
    code += "import lnbook.kernels.cpu\n"
    assert python(code + "print([n for n in ('numba', 'triton') if n in sys.modules])") == ["[]"]


def test_without_numba_torch_operations_take_over_and_say_so_once():
    code = """
import sys, warnings
sys.modules["numba"] = None  # importing it raises ImportError
import torch
from lnbook.layers import LayerNorm, RMSNorm
x = torch.arange(12.0).reshape(3, 4).square().requires_grad_()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for kind in (LayerNorm, RMSNorm):
        for function in (kind(4, implementation="fused"), kind(4, implementation="plain")):
            y = function(x)
            (grad,) = torch.autograd.grad(y[:, 1].sum(), x)
            print([round(v, 3) for v in (y + grad).flatten().tolist()])
        compiled = torch.compile(kind(4, implementation="fused"), backend="eager", fullgraph=True)
        print(torch.allclose(compiled(x), kind(4, implementation="plain")(x), atol=1e-5))
print(len(caught), caught[0].message, caught[0].filename == __file__ if "__file__" in dir() else "")
"""
    found = python(code)
    assert found[0] == found[1]
    assert found[3] == found[4]
    assert found[2] == found[5] == "True"
    assert found[6].startswith("1 lnbook: fused norms fall back to slower torch operations")
    assert "need Numba" in found[6]


def test_where_nothing_can_be_cached_kernels_still_compile(monkeypatch):
    cfunc, asked = _compile.cfunc, []

    def refusing(signature, cache=False, **options):
        asked.append(cache)
        if cache:
            raise RuntimeError("cannot cache function 'f': no locator available for file 'f.py'")
        return cfunc(signature, **options)

    monkeypatch.setattr(_compile, "cfunc", refusing)

    def doubled(address):
        numbers = _compile.array_at(address, (2,), np.int64(0))
        numbers[1] = 2 * numbers[1]

    job = _compile.job(doubled)
    memory = (_compile.ctypes.c_int64 * 2)(0, 21)
    job(memory)
    assert memory[1] == 42
    assert asked == [True, False]


def test_other_devices_fall_back(monkeypatch):
    monkeypatch.setattr(operators, "_WITHOUT", set())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not operators.runs_on("meta")
    with pytest.warns(UserWarning, match="no kernels for the device 'mps'"):
        assert not operators.runs_on("mps")
    assert not operators.runs_on("mps")  # it warns only once
    assert operators.runs_on("cpu")


def test_cuda_tensors_get_the_triton_kernels(monkeypatch):
    from lnbook.kernels.gpu import operators as gpu_operators

    registered = []
    monkeypatch.setattr(operators, "DEVICES", set())
    monkeypatch.setattr(gpu_operators, "register", registered.append)
    monkeypatch.setattr(operators.importlib.util, "find_spec", lambda name: name == "triton")
    assert operators.runs_on("cuda")
    assert registered == [operators]
    monkeypatch.setattr(operators, "DEVICES", set())
    monkeypatch.setattr(operators, "_WITHOUT", set())
    monkeypatch.setattr(operators.importlib.util, "find_spec", lambda name: None)
    with pytest.warns(UserWarning, match="need Triton"):
        assert not operators.runs_on("cuda")
