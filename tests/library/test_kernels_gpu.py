"""The Triton kernels without a GPU: interpreted, to compare with NumPy in float64, and compiled.

A worker is a separate process; see `tests.helpers.triton_worker`.
"""

import importlib.util
import itertools
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest
import torch

from lnbook import functional, reference
from lnbook.kernels import operators
from lnbook.kernels.gpu import layer_norm_backward, layer_norm_forward, rms_norm_forward
from lnbook.kernels.gpu._launch import (
    BACKWARD_ROW_BYTES,
    ROW_BYTES,
    WIDE_WARPS,
    backward_options,
    block_size,
    forward_options,
)
from lnbook.layers import LayerNorm, RMSNorm
from tests.helpers import triton_worker
from tests.helpers.triton_worker import Worker

# Triton is available only for Linux.
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton isn't installed"
)
EPS = 0.3
NAN, INF = float("nan"), float("inf")
# These allow for rounding the result and for summing a few numbers.
TOLERANCES = {
    torch.float64: 4e-15,
    torch.float32: 2e-6,
    torch.float16: 2**-10,
    torch.bfloat16: 2**-7,
}
DTYPES = list(TOLERANCES)


@pytest.fixture(scope="module")
def interpreted() -> Iterator[Worker]:
    worker = Worker(interpret=True)
    yield worker
    worker.stop()


@pytest.fixture(scope="module")
def compiling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    worker = Worker(interpret=False, TRITON_CACHE_DIR=str(tmp_path_factory.mktemp("triton")))
    yield worker
    worker.stop()


def random_case(rows, width, dtype=torch.float64, parameter_dtype=None, seed=0):
    """Return x with a nonzero mean, weight, bias and upstream gradient."""
    rng = np.random.default_rng(seed)
    x = torch.tensor(2.0 * rng.standard_normal((rows, width)) + 3.0).to(dtype)
    weight, bias = torch.tensor(rng.standard_normal((2, width))).to(parameter_dtype or dtype)
    return x, weight, bias, torch.tensor(rng.standard_normal((rows, width))).to(dtype)


def float64(tensor):
    return None if tensor is None else tensor.double().numpy()


def check_layer_norm(results, x, weight, bias, grad_output):
    y, saved, *grads = results
    width, tolerance = x.shape[1], TOLERANCES[x.dtype]
    exact = [float64(t) for t in (x, weight, bias, grad_output)]
    expected = [reference.layer_norm(exact[0], width, *exact[1:3], EPS)]
    expected += reference.layer_norm_backward(exact[3], exact[0], width, exact[1], EPS)
    for found, right in zip((y, *grads), expected, strict=True):
        scale = max(np.abs(right).max(), 1e-3)
        np.testing.assert_allclose(float64(found), right, rtol=0, atol=scale * tolerance)
    if saved is not None:
        (mean, rest, rstd), statistics = (
            saved,
            TOLERANCES[torch.promote_types(x.dtype, torch.float32)],
        )
        np.testing.assert_allclose(mean + rest, exact[0].mean(1), rtol=statistics)
        np.testing.assert_allclose(rstd, 1 / np.sqrt(exact[0].var(1) + EPS), rtol=statistics)
    parameters = x.dtype if weight is None else weight.dtype
    assert [t.dtype for t in (y, *grads)] == [x.dtype, x.dtype, parameters, parameters]


def check_rms_norm(results, x, weight, grad_output):
    y, rstd, *grads = results
    width, tolerance = x.shape[1], TOLERANCES[x.dtype]
    exact = [float64(t) for t in (x, weight, grad_output)]
    expected = [reference.rms_norm(exact[0], width, exact[1], EPS)]
    expected += reference.rms_norm_backward(exact[2], exact[0], width, exact[1], EPS)
    for found, right in zip((y, *grads), expected, strict=True):
        scale = max(np.abs(right).max(), 1e-3)
        np.testing.assert_allclose(float64(found), right, rtol=0, atol=scale * tolerance)
    if rstd is not None:
        right, statistics = (
            (exact[0] ** 2).mean(1),
            TOLERANCES[torch.promote_types(x.dtype, torch.float32)],
        )
        np.testing.assert_allclose(rstd, 1 / np.sqrt(right + EPS), rtol=statistics)
    parameter = x.dtype if weight is None else weight.dtype
    assert [t.dtype for t in (y, *grads)] == [x.dtype, x.dtype, parameter]


@needs_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "width"), [(1, 1), (5, 2), (9, 100), (3, 256), (6, 257), (4, 768), (5, 4000)]
)
def test_both_norms_equal_numpy(interpreted, rows, width, dtype):
    x, weight, bias, grad = random_case(rows, width, dtype)
    results = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
    check_layer_norm(results, x, weight, bias, grad)
    check_rms_norm(interpreted(triton_worker.rms_norm, x, weight, EPS, grad), x, weight, grad)


@needs_triton
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rows_wider_than_a_block_go_through_a_loop(interpreted, dtype):
    width = 3 * ROW_BYTES // 4 // 2 + 7
    for limit in (ROW_BYTES, BACKWARD_ROW_BYTES):
        assert block_size(width, torch.float32, limit) == 0
    x, weight, bias, grad = random_case(6, width, dtype)
    results = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
    check_layer_norm(results, x, weight, bias, grad)
    check_rms_norm(interpreted(triton_worker.rms_norm, x, weight, EPS, grad), x, weight, grad)
    if dtype == torch.float32:  # what's skipped without a weight is the same for each dtype
        results = interpreted(triton_worker.layer_norm, x, None, None, EPS, grad)
        check_layer_norm(results, x, None, None, grad)
        check_rms_norm(interpreted(triton_worker.rms_norm, x, None, EPS, grad), x, None, grad)


@needs_triton
def test_a_row_may_fit_forward_and_not_backward(interpreted):
    width = BACKWARD_ROW_BYTES // 8 + 1  # a float64 has 8 bytes
    assert block_size(width, torch.float64, ROW_BYTES)
    assert not block_size(width, torch.float64, BACKWARD_ROW_BYTES)
    x, *parameters, grad = random_case(6, width)
    for weight, bias in (parameters, (None, None)):
        results = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
        check_layer_norm(results, x, weight, bias, grad)
        check_rms_norm(interpreted(triton_worker.rms_norm, x, weight, EPS, grad), x, weight, grad)


@needs_triton
def test_sums_of_upstream_gradients_with_a_mean_stay_exact(interpreted):
    """NumPy's rounding errors add up if it sums thousands of numbers of one sign in a row."""
    x, *_, grad = random_case(2, 8192, torch.float32)
    grad += 20.0
    results = interpreted(triton_worker.layer_norm, x, None, None, EPS, grad)
    check_layer_norm(results, x, None, None, grad)
    check_rms_norm(interpreted(triton_worker.rms_norm, x, None, EPS, grad), x, None, grad)


@needs_triton
@pytest.mark.parametrize("has_weight", [True, False])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(
    ("dtype", "parameter_dtype"),
    [(torch.float32, torch.float32), (torch.bfloat16, torch.float32)],
)
def test_weight_and_bias_are_optional_and_may_be_float32(
    interpreted, has_weight, has_bias, dtype, parameter_dtype
):
    x, weight, bias, grad = random_case(5, 24, dtype, parameter_dtype)
    weight, bias = weight if has_weight else None, bias if has_bias else None
    results = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
    check_layer_norm(results, x, weight, bias, grad)
    check_rms_norm(interpreted(triton_worker.rms_norm, x, weight, EPS, grad), x, weight, grad)


@needs_triton
@pytest.mark.parametrize(
    "layout",
    [
        lambda t: t[:, 1:-1],  # rows with gaps between them
        lambda t: t[::2],
        lambda t: t[:, ::2],  # elements with gaps
        lambda t: t.t(),
        lambda t: t[:1].expand(4, -1),
    ],
)
def test_tensors_need_not_be_contiguous(interpreted, layout):
    x, _, _, grad = random_case(12, 20)
    x, grad = layout(x), layout(grad)
    weight, bias = random_case(2, 2 * x.shape[1], seed=1)[1:3]
    weight, bias = weight[::2], bias[::2]
    results = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
    check_layer_norm(results, x, weight, bias, grad)
    assert results[0].is_contiguous()
    assert results[2].is_contiguous()
    check_rms_norm(interpreted(triton_worker.rms_norm, x, weight, EPS, grad), x, weight, grad)


@needs_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (0, 0)])
def test_empty_matrices(interpreted, shape, dtype):
    x, weight, bias, grad = random_case(*shape, dtype)
    y, statistics, dx, dweight, dbias = interpreted(
        triton_worker.layer_norm, x, weight, bias, EPS, grad
    )
    assert y.shape == dx.shape == shape
    assert statistics.shape == (3, shape[0])
    assert statistics.isnan().all()
    assert torch.equal(dweight, torch.zeros_like(weight))
    assert torch.equal(dbias, torch.zeros_like(weight))
    y, _, dx, dweight = interpreted(triton_worker.rms_norm, x, weight, EPS, grad)
    assert y.shape == dx.shape == shape
    assert torch.equal(dweight, torch.zeros_like(weight))


def special_rows(width, dtype):
    """Rows that a careless kernel gets wrong."""
    base = np.random.default_rng(3).standard_normal(width)
    largest = torch.finfo(dtype).max
    far = 1 / torch.finfo(dtype).eps / 8  # a mean whose last bit is worth 1/8 of the deviation
    rows = [np.full(width, 0.1), np.full(width, -largest / width / 2), np.zeros(width)]
    rows += [base + far, 1e3 * base + far, np.where(np.arange(width) == 3, NAN, base)]
    rows += [np.where(np.arange(width) == 5, INF, base), np.full(width, largest)]
    rows += [base * largest**0.6, base * 1e-30]
    return torch.tensor(np.array(rows)).to(dtype)


@needs_triton
@pytest.mark.parametrize("eps", [0.0, 1e-5])
@pytest.mark.parametrize(
    ("width", "dtype"),
    [(12, torch.float32), (12, torch.float64), (100, torch.float32), (20000, torch.float32)],
)
def test_special_rows_are_those_of_the_plain_function(interpreted, width, dtype, eps):
    x = special_rows(width, dtype)
    weight, bias, grad = random_case(len(x), width, dtype)[1:]
    found = interpreted(triton_worker.layer_norm, x, weight, bias, eps, grad)
    expected = functional.layer_norm(x, (width,), weight, bias, eps)
    dx, *_ = functional.layer_norm_backward(grad, x, (width,), weight, eps)
    tolerance = TOLERANCES[dtype]
    for ours, right in ((found[0], expected), (found[2], dx)):
        assert torch.equal(ours.isnan(), right.isnan())
        for one, other in zip(ours, right, strict=True):
            scale = float(other.nan_to_num().abs().max())
            torch.testing.assert_close(
                one, other, rtol=0, atol=4 * scale * tolerance, equal_nan=True
            )
    if eps:
        assert all(torch.equal(found[0][i], bias) for i in range(3))
    else:
        assert found[0][:3].isnan().all()
    rms = interpreted(triton_worker.rms_norm, x, weight, eps, grad)
    right = functional.rms_norm(x, (width,), weight, eps)
    assert torch.equal(rms[0].isnan(), right.isnan())
    torch.testing.assert_close(rms[0], right, rtol=8 * tolerance, atol=0, equal_nan=True)


@needs_triton
@pytest.mark.parametrize("width", [50, 20000])
def test_sums_over_rows_survive_a_large_mean(interpreted, width):
    """In float32, a mean near 1e5 is off by up to 0.004; the deviation is 1."""
    x, weight, bias, grad = random_case(4, width, torch.float32)
    x = 0.5 * x + 1e5
    *_, dweight, dbias = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
    exact = reference.layer_norm_backward(float64(grad), float64(x), width, float64(weight), EPS)
    for found, right in zip((dweight, dbias), exact[1:], strict=True):
        np.testing.assert_allclose(found, right, rtol=0, atol=2e-5)


@needs_triton
def test_bfloat16_results_are_rounded_once_and_to_the_nearest(interpreted):
    x, weight, bias, grad = random_case(8, 300, torch.bfloat16)
    found = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
    wide = (t.float() for t in (x, weight, bias))
    in_float32 = interpreted(triton_worker.layer_norm, *wide, EPS, grad.float())
    for half, full in zip(found, in_float32, strict=True):
        assert torch.equal(half, full.to(half.dtype))


@needs_triton
def test_sums_over_rows_stay_exact_in_bfloat16(interpreted):
    """With hundreds of rows, a sum in 16 bits would be off by several percent."""
    x, weight, bias, grad = random_case(400, 8, torch.bfloat16)
    *_, dweight, dbias = interpreted(triton_worker.layer_norm, x, weight, bias, EPS, grad)
    expected = reference.layer_norm_backward(float64(grad), float64(x), 8, float64(weight), EPS)
    for found, right in zip((dweight, dbias), expected[1:], strict=True):
        assert np.abs(float64(found) - right).max() < 2**-8 * np.abs(right).max()


@needs_triton
def test_results_are_the_same_bit_for_bit(interpreted):
    case = random_case(30, 200, torch.float32)
    first, second = (
        interpreted(triton_worker.layer_norm, *case[:3], EPS, case[3]) for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


# The kernels as operators, for any shape.


@needs_triton
@pytest.mark.parametrize("norm", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize(
    ("shape", "dims"), [((6,), 1), ((2, 3, 5), 1), ((2, 3, 5), 2), ((0, 4), 1)]
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("has_weight", [True, False])
def test_operators_take_any_shape(interpreted, norm, shape, dims, dtype, has_weight):
    rng, normalized = np.random.default_rng(4), shape[-dims:]
    x, grad = torch.tensor(rng.standard_normal((2, *shape)) + 1).to(dtype)
    weight, bias = torch.tensor(rng.standard_normal((2, *normalized))).to(dtype)
    parameters = (weight, bias)[: 2 if norm == "layer_norm" else 1]
    parameters = parameters if has_weight else (None,) * len(parameters)
    found = interpreted(triton_worker.operators, norm, x, normalized, parameters, EPS, grad)
    y, statistics, *grads = found
    plain, plain_backward = getattr(functional, norm), getattr(functional, f"{norm}_backward")
    exact = [None if t is None else t.double() for t in (x, *parameters, grad)]
    right = plain(exact[0], normalized, *exact[1:-1], EPS)
    rights = plain_backward(exact[-1], exact[0], normalized, exact[1], EPS)
    for ours, other in zip((y, *grads), (right, *rights), strict=True):
        tolerance = 2 * TOLERANCES[dtype]
        torch.testing.assert_close(ours.double(), other, rtol=tolerance, atol=tolerance)
    wide = torch.promote_types(dtype, torch.float32)
    assert statistics.shape == (
        3 if norm == "layer_norm" else 1,
        x.numel() // max(1, weight.numel()),
    )
    assert [t.dtype for t in (statistics, *grads[1:])] == [wide] * len(grads)
    assert [t.dtype for t in (y, grads[0])] == [dtype] * 2


# Compiled for GPUs with compute capability 8.0 (A100) and 9.0 (H100); this needs no GPU.

POINTERS = ["x", "weight", "bias", "y", "grad_output", "grad_input"]
COMPUTED = ["statistics", "rstd", "parts"]
FORWARD = {"eps": 1e-5}
WITHOUT_SUMS = {"parts": None}
KERNELS = [
    ("layer_norm", "_forward", FORWARD),
    ("layer_norm", "_backward", {}),
    ("rms_norm", "_forward", FORWARD),
    ("rms_norm", "_backward", {}),
    ("layer_norm", "_backward", WITHOUT_SUMS),
    ("rms_norm", "_backward", WITHOUT_SUMS),
]
WIDE_KERNELS = [
    ("layer_norm", "_forward_wide", FORWARD),
    ("layer_norm", "_backward_wide", {}),
    ("layer_norm", "_parts_of_wide_rows", {}),
    ("rms_norm", "_forward_wide", FORWARD),
    ("rms_norm", "_backward_wide", {}),
    ("rms_norm", "_parts_of_wide_rows", {}),
]
TRITON = {
    torch.float16: "fp16",
    torch.bfloat16: "bf16",
    torch.float32: "fp32",
    torch.float64: "fp64",
}


def compiled(worker, module, kernel, more, dtype, width, block, architecture):
    computing = "float64" if dtype == torch.float64 else "float32"
    options = {"num_warps": WIDE_WARPS}
    if kernel == "_forward":
        options = forward_options(block, getattr(torch, computing))
    if kernel == "_backward":
        stages, warps = backward_options(block, dtype)
        options = {"num_warps": warps}
        more = {"stages": stages, **more}
    types = dict.fromkeys(POINTERS, f"*{TRITON[dtype]}")
    types |= dict.fromkeys(COMPUTED, "*fp64" if computing == "float64" else "*fp32")
    types |= dict.fromkeys(("x_stride", "grad_stride", "rows"), "i32")
    constants = {"width": width, "block": block, "computing": computing, **more}
    return worker(triton_worker.compiled, module, kernel, types, constants, options, architecture)


# 16-bit rows are computed like float32 ones, so each 16-bit dtype needs only one architecture.
@needs_triton
@pytest.mark.parametrize(
    ("dtype", "architecture"),
    [
        (torch.float16, 80),
        (torch.bfloat16, 90),
        *itertools.product([torch.float32, torch.float64], [80, 90]),
    ],
)
@pytest.mark.parametrize(("module", "kernel", "more"), KERNELS)
def test_the_largest_block_compiles_and_stays_in_registers(
    compiling, module, kernel, more, dtype, architecture
):
    limit = BACKWARD_ROW_BYTES if (kernel, more) == ("_backward", {}) else ROW_BYTES
    width = limit // (8 if dtype == torch.float64 else 4)
    block = block_size(width, torch.promote_types(dtype, torch.float32), limit)
    assert block == width
    _, stack, *_ = compiled(compiling, module, kernel, more, dtype, width, block, architecture)
    assert stack <= 16  # bytes per thread; a block twice as large needs hundreds


@needs_triton
@pytest.mark.parametrize(("module", "kernel", "more"), KERNELS + WIDE_KERNELS)
def test_a_single_row_compiles(compiling, module, kernel, more):
    """Triton makes a number that is 1 a constant, which doesn't have a tensor's methods."""
    one = {"rows": 1, "x_stride": 1, "grad_stride": 1, **more}
    compiled(compiling, module, kernel, one, torch.float32, 1, 1, 90)


@needs_triton
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("module", "kernel", "more"), WIDE_KERNELS)
def test_the_kernels_for_wide_rows_compile(compiling, module, kernel, more, dtype):
    _, stack, *_ = compiled(compiling, module, kernel, more, dtype, 40000, 4096, 90)
    assert stack == 0


@needs_triton
@pytest.mark.parametrize("module", ["layer_norm", "rms_norm"])
@pytest.mark.parametrize(
    ("dtype", "width"),
    [(torch.bfloat16, 4100), (torch.bfloat16, 8188), (torch.float32, 2050), (torch.float32, 4094)],
)
def test_rows_read_ahead_fit_in_the_shared_memory_of_any_gpu(compiling, module, dtype, width):
    """Consumer GPUs allow 99 KiB per program. These widths need the most: they don't fill 16 B."""
    block = block_size(width, torch.float32, BACKWARD_ROW_BYTES)
    *_, shared = compiled(compiling, module, "_backward", {}, dtype, width, block, 86)
    assert 2 * 2 * width * dtype.itemsize <= shared <= 99 * 1024


@needs_triton
@pytest.mark.parametrize(("weight", "bias"), [(True, True), (True, False), (False, False)])
def test_each_element_is_loaded_once(compiling, weight, bias):
    """A warp of 32 threads loads 4 elements at a time: 8 loads of each row of 1024."""
    missing = {"weight": None} if not weight else {}
    missing |= {"bias": None} if not bias else {}
    given = (torch.float32, 1024, 1024, 90)
    loads, *_ = compiled(compiling, "layer_norm", "_forward", FORWARD | missing, *given)
    assert len(loads) == 8 * (1 + weight + bias)
    assert all("v4.b32" in load for load in loads)
    missing.pop("bias", None)
    loads, *_ = compiled(compiling, "layer_norm", "_backward", missing, *given)
    assert sum("v4.b32" in load for load in loads) == 2 * (2 + weight)  # by 4 warps


@needs_triton
@pytest.mark.parametrize(("module", "kernel", "more"), KERNELS + WIDE_KERNELS)
def test_nothing_is_approximated(compiling, module, kernel, more):
    """In float32, `/` and `tl.sqrt` would approximate: a constant row wouldn't give exactly 0."""
    block = 1024 if (module, kernel, more) in KERNELS else 256
    *_, approximate, _ = compiled(compiling, module, kernel, more, torch.float32, 1000, block, 90)
    assert approximate == []


@needs_triton
@pytest.mark.parametrize("count", [1, 2])
def test_the_second_stage_compiles(compiling, count):
    types = dict.fromkeys(("parts", "first_sum", "second_sum"), "*fp32") | {"count": "i32"}
    constants = {"width": 1000, "tile_rows": 128, "tile_columns": 16}
    constants |= {"second_sum": None} if count == 1 else {}
    _, stack, *_ = compiling(
        triton_worker.compiled, "_parts", "_second_stage", types, constants, {}, 90
    )
    assert stack == 0


# On a GPU, if there is one.

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
LAYERS = {"layer_norm": LayerNorm, "rms_norm": RMSNorm}


@needs_triton
@needs_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "width"), [(1, 1), (700, 257), (600, 4096), (300, 8192), (280, 16000), (9, 20000)]
)
def test_a_gpu_computes_the_same(compiling, rows, width, dtype):
    x, weight, bias, grad = random_case(rows, width, dtype)
    results = compiling(triton_worker.on_gpu, "layer_norm", x, weight, bias, EPS, grad)
    check_layer_norm(results, x, weight, bias, grad)
    results = compiling(triton_worker.on_gpu, "rms_norm", x, weight, EPS, grad)
    check_rms_norm(results, x, weight, grad)


@needs_triton
@needs_gpu
@pytest.mark.parametrize("norm", list(LAYERS))
def test_operators_pass_opcheck_on_a_gpu(norm):
    assert operators.runs_on("cuda")
    x, weight, bias, grad = (t.cuda() for t in random_case(3, 6, torch.float32))
    forward = getattr(operators, f"{norm}_operator")
    given = (x, [6], weight, bias)[: 4 if norm == "layer_norm" else 3]
    _, statistics = forward(*given, EPS)
    inputs = [t.requires_grad_() if isinstance(t, torch.Tensor) else t for t in given]
    torch.library.opcheck(forward, (*inputs, EPS))
    saved = (grad, x.detach(), [6], weight.detach(), statistics, EPS)
    torch.library.opcheck(getattr(operators, f"{norm}_backward_operator"), saved)


@needs_triton
@needs_gpu
@pytest.mark.parametrize("norm", list(LAYERS))
@pytest.mark.parametrize("dtype", DTYPES)
def test_fused_layers_on_a_gpu(norm, dtype):
    x, weight, bias, grad = random_case(40, 300, dtype)
    layer = LAYERS[norm](300, eps=EPS, implementation="fused", dtype=dtype, device="cuda")
    with torch.no_grad():
        for parameter, value in zip(layer.parameters(), (weight, bias), strict=False):
            parameter.copy_(value)
    inputs = [x.detach().cuda().requires_grad_(), *layer.parameters()]
    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    first, second, third = (
        (y.detach(), *torch.autograd.grad(y, inputs, grad.cuda()))
        for y in (layer(inputs[0]), layer(inputs[0]), compiled(inputs[0]))
    )
    for one, again, from_graph in zip(first, second, third, strict=True):
        assert torch.equal(one, again)
        assert torch.equal(one, from_graph)
    found = [one.cpu() for one in first]
    if norm == "layer_norm":
        check_layer_norm([found[0], None, *found[1:]], x, weight, bias, grad)
    else:
        check_rms_norm([found[0], None, *found[1:]], x, weight, grad)
    torch._dynamo.reset()


@needs_triton
@needs_gpu
@pytest.mark.parametrize("norm", list(LAYERS))
def test_derivatives_on_a_gpu(norm):
    x, weight, bias, _ = (t.cuda().requires_grad_() for t in random_case(3, 5))
    given = (x, weight, bias)[: 3 if norm == "layer_norm" else 2]
    operator = getattr(operators, f"{norm}_operator")
    assert operators.runs_on("cuda")

    def y(input, *parameters):
        return operator(input, (5,), *parameters, EPS)[0]

    assert torch.autograd.gradcheck(y, given)
    assert torch.autograd.gradgradcheck(y, given)


# Bad input.


@needs_triton
def test_a_cpu_needs_the_interpreter(compiling):
    x = torch.ones(2, 3)
    for name, args in [
        ("layer_norm_forward", (x, None, None, EPS)),
        ("layer_norm_backward", (x, x, None, x.new_ones(3, 2))),
        ("rms_norm_forward", (x, None, EPS)),
        ("rms_norm_backward", (x, x, None, x[:, 0])),
    ]:
        with pytest.raises(RuntimeError, match=f"{name}: expected x on a CUDA device.* cpu.*INTER"):
            compiling(triton_worker.call, name, *args)


def test_without_triton_everything_can_be_imported_and_a_call_says_what_is_missing():
    code = """
import sys
sys.modules["triton"] = None  # importing it raises ImportError
import torch, lnbook.kernels.gpu as gpu
x, r = torch.ones(2, 3), torch.ones(2)
for call in (
    lambda: gpu.layer_norm_forward(x, None, None, 1e-5),
    lambda: gpu.layer_norm_backward(x, x, None, torch.ones(3, 2)),
    lambda: gpu.rms_norm_forward(x, None, 1e-5),
    lambda: gpu.rms_norm_backward(x, x, None, r),
):
    try:
        call()
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    for line in lines:
        assert "expected Triton to be installed, but" in line
        assert line.endswith('On Linux, install it with: pip install "lnbook[gpu]"')


def test_without_rows_nothing_needs_a_gpu():
    x = torch.ones(0, 3)
    assert [t.shape for t in layer_norm_forward(x, None, None, EPS)] == [(0, 3), (3, 0)]
    assert [t.shape for t in rms_norm_forward(x, None, EPS)] == [(0, 3), (0,)]
    assert [float(t.sum()) for t in layer_norm_backward(x, x, None, x.new_ones(3, 0))] == [0, 0, 0]
