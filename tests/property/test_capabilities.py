"""What PyTorch's tools can do with each differentiable function and class of lnbook.

The table is `cases.CASES`. If a case rejects a tool, it must raise the error in the table rather
than give a wrong answer.
"""

import copy
import io
import pickle
import shutil
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vjp, vmap

from lnbook import functional, layers, recurrent, transformer
from lnbook.layers import BatchNorm1d, BatchNorm2d, LayerNorm, LayerNorm2d, RMSNorm
from lnbook.recurrent import LayerNormGRU, LayerNormGRUCell, LayerNormLSTM, LayerNormLSTMCell
from lnbook.transformer import PostLNBlock, PreLNBlock, SelfAttention, TransformerEncoder
from tests.property.cases import CASES, NOT_APPLICABLE, flat

# Warnings from PyTorch's compiler, its exporter, and transforms of kernels without their own rules.
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning"),
]

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
MODULES = [case for case in CASES if case.make is not None]
every_module = pytest.mark.parametrize("case", MODULES, ids=lambda case: case.name)
FIRST = list({id(case.of): case for case in reversed(CASES)}.values())[::-1]
of_each_one = pytest.mark.parametrize("case", FIRST, ids=lambda case: case.name)

# How far a result may be from the float64 result, in rounding units of its largest number: a stack
# of blocks is a chain of about 20 operations, each with a few roundings.
UNITS = 64
# Where autocast lowers the precision of matrix products; elsewhere, it changes nothing.
LOWERED = (
    "lnbook.transformer",
    "lnbook.recurrent.cell",
    "lnbook.recurrent.steps",
    "lnbook.layers.ada_layer_norm",
)
# The loops with hand-written derivatives, which autocast doesn't affect either.
BY_HAND = ("fused_layer-ba", "fused_layer-per", "fused_layer-carried", "LayerNormLSTM-fused")
LOWER = (torch.float32, torch.bfloat16, torch.float16)


def refused(case, tool):
    """A context that expects the case's error, if the case rejects the tool."""
    if tool not in case.refuses:
        return nullcontext()
    error, words = case.refuses[tool]
    return pytest.raises(error, match=words)


def upstream_of(results, seed=3):
    rng = np.random.default_rng(seed)
    return tuple(torch.tensor(rng.standard_normal(tuple(y.shape))).to(y.dtype) for y in results)


def with_gradients(function, tensors):
    """Return results, and gradients of a random loss."""
    tensors = [tensor.detach().clone().requires_grad_() for tensor in tensors]
    results = function(*tensors)
    return results, torch.autograd.grad(results, tensors, upstream_of(results), allow_unused=True)


def same(found, expected, **tolerance):
    torch.testing.assert_close(found, expected, **tolerance)


def test_every_public_name_is_a_case_or_says_why_not():
    public = {
        name: getattr(module, name)
        for module in (functional, layers, recurrent, transformer)
        for name in module.__all__
    }
    cases = {case.of for case in CASES}
    missing = [name for name, thing in public.items() if thing not in cases]
    assert sorted(missing) == sorted(NOT_APPLICABLE)
    assert cases <= set(public.values())


@every_case
def test_first_derivatives(case):
    function, tensors = case.problem()
    inputs = [tensor.requires_grad_() for tensor in tensors]
    assert torch.autograd.gradcheck(function, inputs, fast_mode=True)


# Stacks of blocks and of plain loops have no second derivatives of their own: theirs are those of
# their parts, which are cases, too.
STACKS = ("TransformerEncoder-plain", "TransformerEncoder-fused", "LayerNormLSTM-plain")


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name not in STACKS], ids=lambda case: case.name
)
def test_second_derivatives(case):
    function, tensors = case.problem()
    inputs = [tensor.requires_grad_() for tensor in tensors]
    with refused(case, "gradgradcheck"):
        assert torch.autograd.gradgradcheck(function, inputs, fast_mode=True, atol=1e-4)


@every_case
def test_vjp_is_the_gradient(case):
    function, tensors = case.problem()
    expected, gradients = with_gradients(function, tensors)
    with refused(case, "vjp"):
        results, pull = vjp(function, *tensors)
        same(results, expected)
        same(pull(upstream_of(results)), gradients)


@every_case
def test_jvp_is_the_transpose_of_the_gradient(case):
    function, tensors = case.problem()
    results, gradients = with_gradients(function, tensors)
    directions = upstream_of(tensors, seed=4)
    with refused(case, "jvp"):
        _, pushed = jvp(function, tensors, directions)
        pairs = zip(upstream_of(results), pushed, strict=True)
        forward = sum((u * derivative).sum() for u, derivative in pairs)
        pairs = zip(gradients, directions, strict=True)
        same(forward, sum((gradient * direction).sum() for gradient, direction in pairs))


@every_case
def test_vmap_is_a_loop_also_over_gradients(case):
    function, tensors = case.problem()
    upstream = upstream_of(function(*tensors))
    many = [tuple(scale * tensor for tensor in tensors) for scale in (1.0, -0.5)]

    def loss(*tensors):
        return sum((u * y).sum() for u, y in zip(upstream, function(*tensors), strict=True))

    stacked = [torch.stack(tensors) for tensors in zip(*many, strict=True)]
    places = tuple(range(len(tensors)))
    with refused(case, "vmap"):
        results = vmap(function)(*stacked)
        gradients = vmap(grad(loss, places))(*stacked)
        for i, ones in enumerate(many):
            same(tuple(result[i] for result in results), function(*ones))
            same(tuple(gradient[i] for gradient in gradients), grad(loss, places)(*ones))


@of_each_one
def test_compiles_without_a_break(case):
    torch.compiler.reset()
    call, tensors = case.problem()
    if case.make is not None:
        module, tensors = case.module(), case.tensors()
        call = lambda *tensors: flat(module(*tensors, **case.options))  # noqa: E731
    compiled = torch.compile(call, backend="aot_eager", fullgraph=True)
    if tensors:
        same(with_gradients(compiled, tensors), with_gradients(call, tensors))
    else:
        same(compiled(), call())


def test_compiles_to_machine_code():
    # Without a C++ compiler, run the graph as is instead of compiling it.
    backend = "inductor" if shutil.which("c++") or shutil.which("g++") else "aot_eager"
    torch.compiler.reset()
    layer = LayerNorm(4, dtype=torch.float64, implementation="fused")
    x = torch.randn(3, 4, dtype=torch.float64)
    with torch.no_grad():
        same(torch.compile(layer, backend=backend, fullgraph=True)(x), layer(x))


@pytest.mark.parametrize(
    "case", [case for case in FIRST if case.make is not None], ids=lambda case: case.name
)
def test_exports(case):
    module, options = case.module().eval(), dict(case.options)
    exported = torch.export.export(module, case.tensors(), options)
    others = case.tensors(seed=7)
    same(flat(exported.module()(*others, **options)), flat(module(*others, **options)))


@every_case
def test_meta_tensors_have_the_shapes_and_dtypes_of_the_results(case):
    function, tensors = case.problem(torch.float32)
    expected = function(*tensors)
    if case.make is None:
        results = function(*(tensor.to("meta") for tensor in tensors))
    else:
        module = case.make(dtype=torch.float32, device="meta")
        options = {
            name: value.to("meta") if isinstance(value, torch.Tensor) else value
            for name, value in case.options.items()
        }
        inputs = [tensor.to("meta") for tensor in case.tensors(torch.float32)]
        results = flat(module(*inputs, **options))
    assert all(result.is_meta for result in results)
    assert [(y.shape, y.dtype) for y in results] == [(y.shape, y.dtype) for y in expected]


@every_case
def test_strides_change_nothing(case):
    function, tensors = case.problem()

    def spread(tensor):
        """The same values, in every other element of a larger block of memory."""
        memory = torch.full([2 * size for size in reversed(tensor.shape)], torch.nan).to(tensor)
        view = memory[(slice(None, None, 2),) * tensor.ndim].permute(*reversed(range(tensor.ndim)))
        return view.copy_(tensor)

    results, gradients = with_gradients(function, tensors)
    inputs = [spread(tensor).requires_grad_() for tensor in tensors]
    assert not any(tensor.is_contiguous() for tensor in inputs if tensor.numel() > 1)
    found = function(*inputs)
    same(found, results)
    upstream = [spread(tensor) for tensor in upstream_of(found)]
    same(torch.autograd.grad(found, inputs, upstream, allow_unused=True), gradients)


@every_case
def test_what_was_given_stays_as_it_was(case):
    function, tensors = case.problem()
    before = [tensor.clone() for tensor in tensors]
    with_gradients(function, tensors)
    with torch.no_grad():
        function(*tensors)
    assert all(torch.equal(tensor, kept) for tensor, kept in zip(tensors, before, strict=True))


@every_case
@pytest.mark.parametrize("dtype", LOWER, ids=str)
def test_lower_precision_is_near_float64(case, dtype):
    function, tensors = case.problem(dtype)
    exact, _ = case.problem()
    found = with_gradients(function, tensors)
    expected = with_gradients(exact, [tensor.double() for tensor in tensors])
    unit = torch.finfo(dtype).eps / 2
    for ours, theirs in zip(flat(found), flat(expected), strict=True):
        assert ours.dtype == dtype
        largest = max(1.0, float(theirs.detach().abs().max()))
        assert float((ours.double() - theirs).detach().abs().max()) <= UNITS * unit * largest


@every_case
def test_autocast_lowers_products_of_matrices_alone(case):
    function, tensors = case.problem(torch.float32)
    expected = with_gradients(function, tensors)
    with torch.autocast("cpu", torch.bfloat16):
        found = with_gradients(function, tensors)
    unit = torch.finfo(torch.bfloat16).eps / 2
    for ours, theirs in zip(flat(found), flat(expected), strict=True):
        assert ours.dtype in (torch.float32, torch.bfloat16)
        largest = max(1.0, float(theirs.detach().abs().max()))
        assert float((ours - theirs).detach().abs().max()) <= UNITS * unit * largest
    lowered = case.of.__module__.startswith(LOWERED)
    if not lowered:
        same(found[0], expected[0], rtol=0.0, atol=0.0)
    # Autocast also lowers autograd's own matrix products in the backward pass.
    of_norms = case.of.__module__.startswith(("lnbook.f", "lnbook.l"))
    if case.name.startswith(BY_HAND) or (of_norms and not lowered):
        same(found[1], expected[1], rtol=0.0, atol=0.0)


def saved_and_loaded(module):
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    other = copy.deepcopy(module)
    with torch.no_grad():
        for tensor in other.state_dict().values():
            tensor.zero_()
    other.load_state_dict(torch.load(file, weights_only=True))
    return other


COPIES = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda module: pickle.loads(pickle.dumps(module)),
    "state_dict": saved_and_loaded,
}


@every_module
@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_copies_are_equal_and_apart(case, duplicate):
    module, inputs = case.module(), case.tensors()
    copied = duplicate(module)
    assert repr(copied) == repr(module)
    expected = flat(module(*inputs, **case.options))
    same(flat(copied(*inputs, **case.options)), expected, rtol=0.0, atol=0.0)
    with torch.no_grad():
        for parameter in copied.parameters():
            parameter.fill_(7.0)
    same(flat(module(*inputs, **case.options)), expected, rtol=0.0, atol=0.0)


@every_module
def test_functional_call_is_a_module_with_other_parameters(case):
    module, other = case.module(), case.module(seed=5)
    state = {name: tensor.detach().clone() for name, tensor in other.state_dict().items()}
    inputs, options = case.tensors(), dict(case.options)
    found = flat(functional_call(module, state, inputs, options))
    same(found, flat(other(*inputs, **options)), rtol=0.0, atol=0.0)


OPTIONS = {"dim_feedforward": 3, "dropout": 0.0}
LAYER = {**OPTIONS, "batch_first": True}
TWINS = {
    "LayerNorm": (LayerNorm(4), nn.LayerNorm(4), (3, 4)),
    "LayerNorm2d": (LayerNorm2d(4, 1e-5), nn.LayerNorm(4), None),
    "RMSNorm": (RMSNorm(4), nn.RMSNorm(4), (3, 4)),
    "BatchNorm1d": (BatchNorm1d(4), nn.BatchNorm1d(4), (3, 4)),
    "BatchNorm2d": (BatchNorm2d(4), nn.BatchNorm2d(4), (3, 4, 2, 2)),
    "LayerNormLSTMCell": (LayerNormLSTMCell(4, 2, variant=None), nn.LSTMCell(4, 2), (3, 4)),
    "LayerNormLSTM": (
        LayerNormLSTM(4, 2, 2, bidirectional=True, variant=None),
        nn.LSTM(4, 2, 2, bidirectional=True),
        (2, 3, 4),
    ),
    "LayerNormGRUCell": (LayerNormGRUCell(4, 2, variant=None), nn.GRUCell(4, 2), (3, 4)),
    "LayerNormGRU": (
        LayerNormGRU(4, 2, 2, bidirectional=True, variant=None),
        nn.GRU(4, 2, 2, bidirectional=True),
        (2, 3, 4),
    ),
    "SelfAttention": (SelfAttention(4, 2), nn.MultiheadAttention(4, 2, batch_first=True), None),
    "PostLNBlock": (
        PostLNBlock(4, 2, **OPTIONS),
        nn.TransformerEncoderLayer(4, 2, **LAYER),
        (2, 3, 4),
    ),
    "PreLNBlock": (
        PreLNBlock(4, 2, **OPTIONS),
        nn.TransformerEncoderLayer(4, 2, norm_first=True, **LAYER),
        (2, 3, 4),
    ),
    "TransformerEncoder": (
        TransformerEncoder(PreLNBlock, 2, 4, 2, **OPTIONS),
        nn.TransformerEncoder(
            nn.TransformerEncoderLayer(4, 2, norm_first=True, **LAYER),
            2,
            nn.LayerNorm(4),
            enable_nested_tensor=False,
        ),
        (2, 3, 4),
    ),
}
WITHOUT_TWIN = {
    "AdaLayerNorm": "PyTorch has none",
    "DyT": "PyTorch has none",
    "PeriLNBlock": "PyTorch has none",
    "DeepNormBlock": "PyTorch's layer has its names but other equations",
    "CausalLanguageModel": "PyTorch has none",
}


def test_every_module_has_a_twin_or_says_why_not():
    names = {case.of.__name__ for case in MODULES}
    assert names == TWINS.keys() | WITHOUT_TWIN.keys()


@pytest.mark.parametrize("name", TWINS)
def test_state_dicts_go_to_pytorch_and_come_back(name):
    ours, theirs, shape = TWINS[name]
    ours, theirs = copy.deepcopy(ours).double(), copy.deepcopy(theirs).double()
    rng = np.random.default_rng(0)
    for tensor in theirs.state_dict().values():
        tensor.copy_(torch.tensor(rng.uniform(0.1, 1.0, tuple(tensor.shape))))
    ours.load_state_dict(theirs.state_dict())
    if shape is not None:
        x = torch.tensor(rng.standard_normal(shape))
        same(flat(ours(x)), flat(theirs(x)))
    for tensor in theirs.state_dict().values():
        tensor.zero_()
    theirs.load_state_dict(ours.state_dict())
    assert list(theirs.state_dict()) == list(ours.state_dict())
    same(dict(theirs.state_dict()), dict(ours.state_dict()), rtol=0.0, atol=0.0)
