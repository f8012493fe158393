"""Bad input to every public function and class: the call raises an error that says what was given.

Each row of the table is one call: the function, its arguments, the type of error, and the words
that the message must contain (what was called, what was expected, what was given). An argument has
one row for each check it has to pass. The details of shared checks are tested in `test_check.py`
and `test_functional.py`, or below in the rows for the first function that uses them.

An `eps` of 0 isn't bad input: PyTorch allows it, and so does lnbook, where a constant row then
gives NaN. The exception is batch normalization of a training batch, where PyTorch rejects it too.
"""

import ast
import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_sequence

from lnbook import (
    debugging,
    functional,
    layers,
    measurements,
    notebook,
    recurrent,
    reference,
    training,
)
from lnbook import transformer as tf
from lnbook.data import adding, digits, text
from lnbook.kernels import gpu
from lnbook.layers import (
    AdaLayerNorm,
    BatchNorm1d,
    BatchNorm2d,
    DyT,
    LayerNorm,
    LayerNorm2d,
    RMSNorm,
)
from lnbook.notebook import worked
from lnbook.recurrent import (
    LayerNormGRU,
    LayerNormGRUCell,
    LayerNormLSTM,
    LayerNormLSTMCell,
    parameter_shapes,
)
from lnbook.reference import lstm

NAN, INF = float("nan"), float("inf")
META = "meta"


class Row(NamedTuple):
    """A call that must fail, and how."""

    of: Any
    call: Callable[[], Any]
    error: type[Exception]
    words: tuple[str, ...]


def row(of: Any, call: Callable[[], Any], error: type[Exception], *words: str) -> Row:
    return Row(of, call, error, words)


def numbers(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(0).standard_normal(shape)).to(dtype)


def bad_eps(of: Any, call: Callable[..., Any], owner: str) -> Iterator[Row]:
    """An eps that's a number, but not a valid one."""
    yield row(of, partial(call, eps=-1e-5), ValueError, owner, "eps", "at least 0", "-1e-05")


# The reference: NumPy. Its messages name the argument; messages about eps name the function too.

ROWS = np.arange(12.0).reshape(3, 4)


def of_reference() -> Iterator[Row]:
    r = reference
    for f, owner in (
        (r.layer_norm, "layer_norm"),
        (r.rms_norm, "rms_norm"),
        (partial(r.layer_norm_backward, ROWS), "layer_norm_backward"),
        (partial(r.rms_norm_backward, ROWS), "rms_norm_backward"),
    ):
        of = getattr(f, "func", f)
        yield from bad_eps(of, partial(f, ROWS, 4), owner)
        yield row(of, partial(f, ROWS, 3), ValueError, "normalized_shape=(3,)", "(3, 4)")
        yield row(of, partial(f, ROWS * 1j, 4), TypeError, "x", "real", "complex128")
        yield row(of, partial(f, ROWS, 4, np.ones(3)), ValueError, "weight", "(4,)", "(3,)")
    for shape, error, words in (
        ((), ValueError, ("at least one", "(3, 4)")),
        ((4.0,), TypeError, ("float", "integer")),
        ("4", TypeError, ("str", "integer")),
    ):
        yield row(r.layer_norm, partial(r.layer_norm, ROWS, shape), error, *words)
    yield row(r.layer_norm, lambda: r.layer_norm(3.0, ()), ValueError, "at least one", "()")
    names = partial(r.layer_norm, ROWS, 4, ["a"] * 4)
    yield row(r.layer_norm, names, TypeError, "weight", "real", "<U1")
    yield row(
        r.layer_norm, lambda: r.layer_norm(ROWS, 4, bias=[1.0]), ValueError, "bias", "(4,)", "(1,)"
    )
    for f in (r.layer_norm_backward, r.rms_norm_backward):
        call = partial(f, ROWS[:2], ROWS, 4)
        yield row(f, call, ValueError, f.__name__, "grad_output", "(3, 4)", "(2, 4)")
    f = r.layer_norm_forward
    yield from bad_eps(f, partial(f, ROWS, 4), f.__name__)
    yield row(f, partial(f, 3.0, ()), ValueError, "at least one", "()")
    yield row(f, partial(f, ROWS, 3), ValueError, f.__name__, "normalized_shape=(3,)", "(3, 4)")
    f = r.layer_norm_jacobian
    yield from bad_eps(f, partial(f, ROWS[0]), f.__name__)
    yield row(f, partial(f, ROWS), ValueError, f.__name__, "(H,)", "(3, 4)")
    yield row(f, partial(f, []), ValueError, f.__name__, "at least 1", "(0,)")
    yield row(f, partial(f, ROWS[0] * 1j), TypeError, f.__name__, "x", "real", "complex128")
    call = partial(f, ROWS[0], weight=np.ones(3))
    yield row(f, call, ValueError, f.__name__, "weight", "(4,)", "(3,)")
    yield from of_reference_channels()


def of_reference_channels() -> Iterator[Row]:
    r, ones = reference, np.ones(4)
    calls = {
        r.batch_norm_forward: r.batch_norm_forward,
        r.batch_norm_backward: partial(r.batch_norm_backward, ROWS),
        r.instance_norm: r.instance_norm,
    }
    for of, f in calls.items():
        yield from bad_eps(of, partial(f, ROWS), "_norm")
        yield row(of, partial(f, ROWS * 1j), TypeError, "x", "real", "complex128")
        yield row(of, partial(f, ROWS, weight=np.ones(3)), ValueError, "weight", "(4,)", "(3,)")
    for f in (r.batch_norm_forward, r.instance_norm):
        yield row(f, partial(f, ones), ValueError, f.__name__, "(N, C, *)", "(4,)")
        yield row(f, partial(f, ROWS, bias=np.ones(3)), ValueError, "bias", "(4,)", "(3,)")
    f = r.batch_norm_backward
    yield row(f, partial(f, ones, ones), ValueError, f.__name__, "(N, C, *)", "(4,)")
    yield row(f, partial(f, ROWS[:2], ROWS), ValueError, "grad_output", "(3, 4)", "(2, 4)")
    f = r.batch_norm_forward
    yield row(f, partial(f, ROWS[:1]), ValueError, "more than one value", "(1, 4)")
    for name in ("running_mean", "running_var"):
        call = partial(f, ROWS, **{name: np.ones(3)})
        yield row(f, call, ValueError, name, "(4,)", "(3,)")
    f = r.batch_norm
    yield from bad_eps(f, partial(f, ROWS, ones, ones), "batch_norm")
    yield row(f, lambda: r.batch_norm(ones, ones, ones), ValueError, "(N, C, *)", "(4,)")
    yield row(f, lambda: r.batch_norm(ROWS, [1.0], ones), ValueError, "running_mean", "(1,)")
    yield row(f, lambda: r.batch_norm(ROWS, ones, [1.0]), ValueError, "running_var", "(1,)")
    f = r.group_norm
    yield from bad_eps(f, partial(f, ROWS, 2), "group_norm")
    yield row(f, partial(f, ones, 2), ValueError, "group_norm", "(N, C, *)", "(4,)")
    yield row(f, partial(f, ROWS, 3), ValueError, "group_norm", "divide", "num_groups=3", "(3, 4)")
    yield row(f, partial(f, ROWS, 0), ValueError, "group_norm", "num_groups", "at least 1", "0")
    yield row(f, partial(f, ROWS, 2.0), TypeError, "group_norm", "integer", "float")
    yield row(f, partial(f, ROWS, 2, np.ones(2)), ValueError, "weight", "(4,)", "(2,)")


def lstm_arguments(variant: str, array: Callable[..., Any]) -> dict[str, Any]:
    shapes = parameter_shapes(variant, 3, 2, True)
    parameters = {name: array(*shape) for name, shape in shapes.items()}
    return {"x": array(5, 3), "h": array(5, 2), "c": array(5, 2), "parameters": parameters}


def of_reference_steps() -> Iterator[Row]:
    for variant, f in lstm.STEPS.items():
        given = lstm_arguments(variant, lambda *shape: np.ones(shape))

        def call(f: Any = f, given: Any = given, **changes: Any) -> Any:
            return f(**{**given, **changes})

        def with_parameter(name: str, value: Any, given: Any = given) -> dict[str, Any]:
            return {**given["parameters"], name: value}

        yield from bad_eps(f, call, f.__name__)
        yield row(f, partial(call, h=np.ones(2)), ValueError, "h ", "(N, hidden_size)", "(2,)")
        yield row(f, partial(call, x=np.ones((5, 4))), ValueError, "x ", "(5, 3)", "(5, 4)")
        yield row(f, partial(call, x=np.ones((4, 3))), ValueError, "x ", "(5, 3)", "(4, 3)")
        yield row(f, partial(call, c=np.ones((1, 2))), ValueError, "c ", "(5, 2)", "(1, 2)")
        yield row(f, partial(call, c=np.ones((5, 2)) * 1j), TypeError, "c ", "real", "complex128")
        bad = with_parameter("weight_hh", np.ones((8, 3)))
        yield row(f, partial(call, parameters=bad), ValueError, "weight_hh", "(8, 2)", "(8, 3)")
        yield row(f, partial(call, parameters={}), KeyError, "weight_ih")
        if variant == "ba":
            for name, shape, size in (("norm_c_weight", "(2,)", 8), ("bias_gates", "(8,)", 2)):
                bad = with_parameter(name, np.ones(size))
                yield row(f, partial(call, parameters=bad), ValueError, name, shape, f"({size},)")
            bad = {key: value for key, value in given["parameters"].items() if "norm_hh" not in key}
            yield row(f, partial(call, parameters=bad), KeyError, "norm_hh_weight")


# Tensors.

X, VECTOR = numbers(3, 4), numbers(4)
SHAPE = (4,)


def of_rows() -> Iterator[Row]:
    f = functional
    for of, call in (
        (f.layer_norm, f.layer_norm),
        (f.rms_norm, f.rms_norm),
        (f.LayerNormFunction, f.LayerNormFunction.apply),
        (f.BlockedLayerNormFunction, f.BlockedLayerNormFunction.apply),
        (f.RMSNormFunction, f.RMSNormFunction.apply),
        (
            f.layer_norm_backward,
            lambda x, *rest, **more: f.layer_norm_backward(x, x, *rest, **more),
        ),
        (f.rms_norm_backward, lambda x, *rest, **more: f.rms_norm_backward(x, x, *rest, **more)),
    ):
        name = of.__name__
        yield from bad_eps(of, partial(call, X, SHAPE), name)
        yield row(of, partial(call, [1.0], (1,)), TypeError, name, "tensor", "list")
        yield row(of, partial(call, X, (3,)), RuntimeError, name, "normalized_shape=(3,)", "(3, 4)")
        yield row(of, partial(call, X, 4), TypeError, name, "tuple or list", "4", "write (4,)")
        yield row(of, partial(call, X.long(), SHAPE), NotImplementedError, name, "float64", "int64")
        yield row(
            of, partial(call, X, SHAPE, VECTOR[:3]), RuntimeError, name, "weight", "(4,)", "(3,)"
        )
    for of in (f.layer_norm, f.LayerNormFunction, f.BlockedLayerNormFunction):
        call = partial(getattr(of, "apply", of), X, SHAPE, None)
        name = of.__name__
        yield row(of, partial(call, VECTOR[:3]), RuntimeError, name, "bias", "(4,)", "(3,)")
    for of in (f.layer_norm_backward, f.rms_norm_backward):
        name = of.__name__
        yield row(of, partial(of, X[:2], X, SHAPE), RuntimeError, name, "(3, 4)", "(2, 4)")
        yield row(of, partial(of, 1.0, X, SHAPE), TypeError, name, "grad_output", "float")
        yield row(of, partial(of, X.to(META), X, SHAPE), RuntimeError, name, "cpu", META)


IMAGE = numbers(2, 4, 3)


# The GPU kernels check their input before they need a GPU.


def of_gpu_kernels() -> Iterator[Row]:
    x, r, statistics = numbers(2, 4), numbers(2), numbers(3, 2)
    forwards = {
        gpu.layer_norm_forward: lambda x, w=None, eps=0.1: gpu.layer_norm_forward(x, w, None, eps),
        gpu.rms_norm_forward: lambda x, w=None, eps=0.1: gpu.rms_norm_forward(x, w, eps),
    }
    backwards = {
        gpu.layer_norm_backward: lambda dy, x=x, w=None, s=statistics: gpu.layer_norm_backward(
            dy, x, w, s
        ),
        gpu.rms_norm_backward: lambda dy, x=x, w=None, s=r: gpu.rms_norm_backward(dy, x, w, s),
    }
    for f, call in forwards.items():
        yield from bad_eps(f, partial(call, x), f.__name__)
        yield row(f, partial(call, [[1.0]]), TypeError, f.__name__, "x", "tensor", "list")
    for f, call in (forwards | backwards).items():
        given = partial(call, x) if f in backwards else call
        owner = f.__name__
        yield row(f, partial(given, numbers(4)), RuntimeError, owner, "two dimensions", "(4,)")
        yield row(f, partial(given, x.long()), NotImplementedError, owner, "float32", "int64")
        wrong = numbers(3)
        yield row(f, partial(call, x, w=wrong), RuntimeError, owner, "weight", "(4,)", "(3,)")
        wrong = numbers(4, dtype=torch.float32)
        yield row(f, partial(call, x, w=wrong), RuntimeError, owner, "float64", "float32")
    yield row(
        gpu.layer_norm_forward,
        lambda: gpu.layer_norm_forward(x, None, numbers(5), 0.1),
        RuntimeError,
        "layer_norm_forward",
        "bias",
        "(4,)",
        "(5,)",
    )
    for f, call in backwards.items():
        owner = f.__name__
        yield row(f, partial(call, 1.0), TypeError, owner, "grad_output", "tensor", "float")
        yield row(f, partial(call, numbers(4, 2)), RuntimeError, owner, "shape", "[2, 4]", "[4, 2]")
        yield row(f, partial(call, x.float()), RuntimeError, owner, "dtype", "float64", "float32")
        yield row(f, partial(call, x.to(META)), RuntimeError, owner, "device", "cpu", "meta")
    for f, name, right in (
        (gpu.layer_norm_backward, "statistics", statistics),
        (gpu.rms_norm_backward, "rstd", r),
    ):
        call, owner, shape = partial(backwards[f], x), f.__name__, str(tuple(right.shape))
        yield row(f, partial(call, s=right.tolist()), TypeError, owner, name, "tensor", "list")
        for wrong in (right[..., :1], right.float(), right.to(META)):
            yield row(f, partial(call, s=wrong), RuntimeError, owner, name, shape, "float64")


def of_channels() -> Iterator[Row]:
    f = functional
    running = (VECTOR, VECTOR.square())
    for of, call in (
        (f.batch_norm, partial(f.batch_norm, running_mean=None, running_var=None, training=True)),
        (f.instance_norm, f.instance_norm),
        (f.group_norm, partial(f.group_norm, num_groups=2)),
    ):
        name = of.__name__
        owner = "norm" if of is f.instance_norm else name  # the function that does the work
        yield from bad_eps(of, partial(call, IMAGE), owner)
        yield row(of, partial(call, 1.0), TypeError, name, "tensor", "float")
        yield row(of, partial(call, VECTOR), RuntimeError, name, "(N, C, *)", "(4,)")
        yield row(of, partial(call, IMAGE.int()), NotImplementedError, name, "float64", "int32")
        for parameter in ("weight", "bias"):
            bad = partial(call, IMAGE, **{parameter: VECTOR[:3]})
            yield row(of, bad, RuntimeError, name, parameter, "(4,)", "(3,)")
    # Input that PyTorch rejects too is in test_functional_batch_norm.py, next to PyTorch's errors.
    for of in (f.batch_norm, f.instance_norm):
        momentum = partial(of, IMAGE, *running, momentum=None)
        yield row(of, momentum, TypeError, "momentum", "real number", "None")
    alone = partial(f.instance_norm, IMAGE, VECTOR, None)
    yield row(f.instance_norm, alone, ValueError, "instance_norm", "both", "Tensor", "NoneType")
    yield row(f.group_norm, partial(f.group_norm, IMAGE, 0), ValueError, "group_norm", "at least 1")
    t, alpha = f.dynamic_tanh, torch.ones(1, dtype=torch.float64)
    name = "dynamic_tanh"
    yield row(t, partial(t, 1.0, alpha), TypeError, name, "input", "tensor", "float")
    yield row(t, partial(t, X.long(), alpha), NotImplementedError, name, "float64", "int64")
    yield row(t, partial(t, X, 0.5), TypeError, name, "alpha", "tensor", "float")
    yield row(t, partial(t, X, VECTOR), RuntimeError, name, "alpha", "(1,)", "(4,)")
    yield row(t, partial(t, X, alpha.to(META)), RuntimeError, name, "alpha", "cpu", META)
    yield row(t, partial(t, X, alpha.float()), RuntimeError, name, "alpha", "float64", "float32")
    yield row(t, partial(t, X, alpha, VECTOR[:3]), RuntimeError, name, "(3,)", "(3, 4)")
    bad = partial(t, X, alpha, VECTOR, VECTOR[:3])
    yield row(t, bad, RuntimeError, name, "bias", "(4,)", "(3,)")


# Layers.


def of_layers() -> Iterator[Row]:
    for kind in (LayerNorm, RMSNorm, DyT, LayerNorm2d):
        name = kind.__name__
        shape: Any = 4 if kind is LayerNorm2d else (4,)
        yield row(kind, partial(kind, ()), RuntimeError, name, "at least one dimension", "()")
        yield row(kind, partial(kind, 4.0), TypeError, name, "integer", "4.0", "float")
        yield row(kind, partial(kind, "4"), TypeError, name, "integer", "'4'", "str")
        wrong = partial(kind, shape, elementwise_affine=1)
        yield row(kind, wrong, TypeError, name, "elementwise_affine", "True or False", "1")
        wrong = partial(kind, shape, dtype=torch.int64)
        yield row(kind, wrong, RuntimeError, name, "float64", "int64")
        if kind is not DyT:
            yield from bad_eps(kind, partial(kind, shape), name)
            wrong = partial(kind, shape, implementation="slow")
            yield row(kind, wrong, ValueError, name, "'fused' or 'plain'", "'slow'")
        if kind is not RMSNorm:
            wrong = partial(kind, shape, bias=None)
            yield row(kind, wrong, TypeError, name, "bias", "True or False", "None")
    wrong = partial(LayerNorm, 4, dtype="half")
    yield row(LayerNorm, wrong, TypeError, "LayerNorm", "torch.dtype", "'half'")
    yield row(LayerNorm2d, partial(LayerNorm2d, (2, 3)), TypeError, "num_channels", "(2, 3)")
    yield row(DyT, partial(DyT, 4, "1"), TypeError, "DyT", "alpha_init", "real number", "'1'")
    yield from of_batch_norms()
    yield from of_calls_of_layers()
    yield from of_adaptive_norms()


def of_adaptive_norms() -> Iterator[Row]:
    kind, name = AdaLayerNorm, "AdaLayerNorm"
    yield row(kind, partial(kind, (), 3), RuntimeError, name, "at least one dimension", "()")
    yield row(kind, partial(kind, 4.0, 3), TypeError, name, "integer", "4.0", "float")
    yield row(kind, partial(kind, 4, 0), ValueError, name, "condition_size", "at least 1", "0")
    yield row(kind, partial(kind, 4, "3"), TypeError, name, "condition_size", "integer", "'3'")
    yield from bad_eps(kind, partial(kind, 4, 3), name)
    for flag in ("gate", "zero_init", "bias"):
        wrong = partial(kind, 4, 3, **{flag: 1})
        yield row(kind, wrong, TypeError, name, flag, "True or False", "1")
    wrong = partial(kind, 4, 3, dtype=torch.int64)
    yield row(kind, wrong, RuntimeError, name, "float64", "int64")
    layer, x, c = AdaLayerNorm(4, 3, dtype=torch.float64), numbers(2, 5, 4), numbers(2, 3)
    yield row(kind, partial(layer, None, c), TypeError, name, "input", "tensor", "NoneType")
    yield row(kind, partial(layer, x, None), TypeError, name, "condition", "tensor", "NoneType")
    yield row(kind, partial(layer, x[..., :3], c), RuntimeError, name, "(4,)", "(2, 5, 3)")
    for shape in ((2, 4), (5, 3), (2, 4, 3), (2, 5, 1, 3), ()):
        wrong = partial(layer, x, numbers(*shape))
        yield row(kind, wrong, RuntimeError, name, "(*, 3)", str(shape), "(2, 5, 4)")
    yield row(kind, partial(layer, x.long(), c), NotImplementedError, name, "input", "int64")
    yield row(kind, partial(layer, x, c.long()), NotImplementedError, name, "condition", "int64")
    wrong = partial(layer, x.float(), c)
    yield row(kind, wrong, RuntimeError, name, "input of torch.float32", "float64")
    wrong = partial(layer, x, c.float())
    yield row(kind, wrong, RuntimeError, name, "condition of torch.float32", "float64")
    yield row(kind, partial(layer, x.to(META), c), RuntimeError, name, "input", META, "cpu")
    yield row(kind, partial(layer, x, c.to(META)), RuntimeError, name, "condition", META, "cpu")


def of_batch_norms() -> Iterator[Row]:
    for kind in (BatchNorm1d, BatchNorm2d):
        name = kind.__name__
        yield from bad_eps(kind, partial(kind, 4), name)
        yield row(kind, partial(kind, -1), ValueError, name, "num_features", "at least 0", "-1")
        yield row(kind, partial(kind, 4.0), TypeError, name, "num_features", "integer", "4.0")
        wrong = partial(kind, 4, momentum="1")
        yield row(kind, wrong, TypeError, name, "momentum", "real number", "'1'")
        for flag in ("affine", "track_running_stats", "bias"):
            wrong = partial(kind, 4, **{flag: 1})
            yield row(kind, wrong, TypeError, name, flag, "True or False", "1")
        wrong = partial(kind, 4, dtype=torch.int64)
        yield row(kind, wrong, RuntimeError, name, "float64", "int64")


def of_calls_of_layers() -> Iterator[Row]:
    rows, image = numbers(3, 4), numbers(2, 4, 3, 3)
    double = {"dtype": torch.float64}
    made: list[tuple[Any, str, nn.Module, torch.Tensor]] = [
        (DyT, "DyT|dynamic_tanh", DyT(4, **double), rows),
        (BatchNorm1d, "BatchNorm1d|batch_norm", BatchNorm1d(4, **double), rows),
        (BatchNorm2d, "BatchNorm2d|batch_norm", BatchNorm2d(4, **double), image),
    ]
    for implementation in ("auto", "native", "fused", "plain"):
        owner = "layer_norm|LayerNorm"
        made += [
            (LayerNorm, owner, LayerNorm(4, **double, implementation=implementation), rows),
            (LayerNorm2d, owner, LayerNorm2d(4, **double, implementation=implementation), image),
            (
                RMSNorm,
                "rms_norm|RMSNorm",
                RMSNorm(4, **double, implementation=implementation),
                rows,
            ),
        ]
    for kind, owner, layer, x in made:
        yield row(kind, partial(layer, None), TypeError, owner, "tensor", "NoneType")
        fewer = x[:, :3]
        yield row(kind, partial(layer, fewer), RuntimeError, owner, "4", str(tuple(fewer.shape)))
        yield row(kind, partial(layer, x.long()), NotImplementedError, owner, "float64", "int64")
        yield row(kind, partial(layer, x.float()), RuntimeError, owner, "float64", "float32")
        # On a different device from the parameters; the message must name both devices.
        yield row(kind, partial(layer, x.to(META)), RuntimeError, owner, META, "cpu")
        error = ValueError if kind in (BatchNorm1d, BatchNorm2d) else RuntimeError
        yield row(kind, partial(layer, x.flatten()[0]), error, owner, "shape ()")
        state = {name: torch.ones(5) for name in layer.state_dict()}
        loads = partial(layer.load_state_dict, state)
        yield row(kind, loads, RuntimeError, kind.__name__, "weight", "torch.Size([5])", "[4]")


def of_folding() -> Iterator[Row]:
    f, owner = layers.fold_affine_, "fold_affine_"
    model = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4))
    # test_folding.py tests what else it rejects, and that the model then stays unchanged.
    yield row(f, lambda: f(None, "0", ["1"]), TypeError, owner, "torch module", "NoneType")
    yield row(f, lambda: f(model, 0, ["1"]), TypeError, owner, "path", "got 0")
    g, owner = layers.fold_centering, "fold_centering"
    yield row(g, lambda: g(None), TypeError, owner, "weight", "tensor", "NoneType")
    yield row(g, lambda: g(VECTOR), ValueError, owner, "(H, D)", "(4,)")
    yield row(g, lambda: g(X, VECTOR), ValueError, owner, "bias", "(3,)", "(4,)")
    yield row(g, lambda: g(X, 1.0), TypeError, owner, "bias", "tensor", "float")
    yield row(g, lambda: g(X.long()), NotImplementedError, owner, "weight", "float64", "int64")


# The LSTM.


def of_steps() -> Iterator[Row]:
    functions = {
        "ba": recurrent.ba_step,
        "per-gate": recurrent.per_gate_step,
        "carried": recurrent.carried_step,
        "none": recurrent.lstm_step,
    }
    for variant, f in functions.items():
        given = lstm_arguments(variant, numbers)
        yield from of_one_step(f, f.__name__, given, "x")
        name, call = f.__name__, partial(f, **given)
        yield row(f, partial(call, x=numbers(3)), RuntimeError, name, "(N, input_size)", "(3,)")
        yield row(f, partial(call, h=numbers(1, 2)), RuntimeError, name, "h ", "(5, 2)", "(1, 2)")
    # Both loops check their arguments as a step does, for any variant.
    for f in (recurrent.plain_layer, recurrent.fused_layer):
        name, given = f.__name__, lstm_arguments("ba", numbers)
        rows, h, parameters = given["x"], given["h"], given["parameters"]
        of_loop = {"rows": rows, "h": h[:3], "c": h[:3], "parameters": parameters}
        call = partial(f, variant="ba", batch_sizes=[3, 2])
        yield from of_one_step(f, name, of_loop, "rows", call)
        for sizes in ([2, 3], [4], [], [3, 1]):
            bad = partial(f, "ba", rows, sizes, h[:3], h[:3], parameters)
            yield row(f, bad, RuntimeError, name, "batch_sizes", "(5, 3)", str(sizes))
        of_rows = "(sum(batch_sizes), input_size)"
        bad = partial(f, "ba", rows[:, 0], [3, 2], h[:3], h[:3], parameters)
        yield row(f, bad, RuntimeError, name, "rows ", of_rows, "(5,)")
        bad = partial(f, "ba", rows, [3, 2], h[:2], h[:2], parameters)
        yield row(f, bad, RuntimeError, name, "h ", "(3, 2)", "(2, 2)")
        for variant in ("lstm", 3):
            bad = partial(f, variant, rows, [3, 2], h[:3], h[:3], parameters)
            yield row(f, bad, ValueError, name, '"ba"', '"none"', repr(variant))
    yield from of_parameter_shapes()


def of_one_step(
    f: Any, name: str, given: dict[str, Any], x: str, call: Callable[..., Any] | None = None
) -> Iterator[Row]:
    """Input that both a step and a loop over steps reject."""
    run = partial(call or f, **given)
    h, parameters = given["h"], given["parameters"]
    yield from bad_eps(f, run, name)
    yield row(f, partial(run, **{x: [1.0]}), TypeError, name, f"{x} ", "tensor", "list")
    yield row(f, partial(run, h=h.numpy()), TypeError, name, "h ", "tensor", "ndarray")
    yield row(f, partial(run, h=h[0]), RuntimeError, name, "h ", "hidden_size", "(2,)")
    few = (len(h), 1)
    yield row(f, partial(run, c=h[:, :1]), RuntimeError, name, "c ", str((len(h), 2)), str(few))
    yield row(f, partial(run, c=h.float()), RuntimeError, name, "c ", "float64", "float32")
    yield row(f, partial(run, c=h.to(META)), RuntimeError, name, "c ", "cpu", META)
    yield row(f, partial(run, parameters={}), KeyError, name, "weight_ih", "[]")
    for weight, expected in (("weight_ih", "(8, 3)"), ("weight_hh", "(8, 2)")):
        bad = {**parameters, weight: numbers(8, 5)}
        yield row(f, partial(run, parameters=bad), RuntimeError, name, weight, expected, "(8, 5)")
        bad = {**parameters, weight: parameters[weight].to(META)}
        yield row(f, partial(run, parameters=bad), RuntimeError, name, weight, "cpu", META)
    bad = {**parameters, "weight_hh": parameters["weight_hh"].numpy()}
    yield row(f, partial(run, parameters=bad), TypeError, name, "weight_hh", "tensor", "ndarray")
    bias = next(key for key in parameters if "bias" in key)
    bad = {**parameters, bias: numbers(1)}
    yield row(f, partial(run, parameters=bad), RuntimeError, name, bias, "(8,)", "(1,)")


def of_parameter_shapes() -> Iterator[Row]:
    f, name = recurrent.parameter_shapes, "parameter_shapes"
    yield row(f, lambda: f("Ba", 3, 2, True), ValueError, name, '"ba"', "'Ba'")
    yield row(f, lambda: f("ba", 0, 2, True), ValueError, name, "input_size", "at least 1", "got 0")
    yield row(
        f, lambda: f("ba", 3, 0, True), ValueError, name, "hidden_size", "at least 1", "got 0"
    )
    yield row(f, lambda: f("ba", 3, 2.0, True), TypeError, name, "hidden_size", "integer", "2.0")
    yield row(f, lambda: f("ba", 3, 2, 1), TypeError, name, "bias", "True or False", "got 1")


def of_grus() -> Iterator[Row]:
    for kind in (LayerNormGRUCell, LayerNormGRU):
        name, make = kind.__name__, partial(kind, 3, 2)
        yield from bad_eps(kind, make, name)
        yield row(kind, partial(kind, 0, 2), ValueError, name, "input_size", "at least 1", "0")
        yield row(kind, partial(kind, 3, 2.0), TypeError, name, "hidden_size", "integer", "2.0")
        yield row(kind, partial(make, bias=1), TypeError, name, "bias", "True or False", "1")
        yield row(kind, partial(make, variant="Ba"), ValueError, name, '"ba"', "'Ba'")
        yield row(kind, partial(make, dtype=torch.int8), RuntimeError, name, "float64", "int8")
        call, x = kind(3, 2, dtype=torch.float64), numbers(5, 3)
        yield row(kind, partial(call, 1.0), TypeError, name, "tensor", "float")
        yield row(kind, partial(call, x[:, :2]), RuntimeError, name, "(*, 3)", "(5, 2)")
        yield row(kind, partial(call, x.float()), ValueError, name, "float64", "float32")


def of_lstms() -> Iterator[Row]:
    for kind in (LayerNormLSTMCell, LayerNormLSTM):
        name, make = kind.__name__, partial(kind, 3, 2)
        yield from bad_eps(kind, make, name)
        yield row(kind, partial(kind, 0, 2), ValueError, name, "input_size", "at least 1", "0")
        yield row(kind, partial(kind, 3, 2.0), TypeError, name, "hidden_size", "integer", "2.0")
        yield row(kind, partial(make, bias=1), TypeError, name, "bias", "True or False", "1")
        yield row(kind, partial(make, variant="Ba"), ValueError, name, '"ba"', "'Ba'")
        yield row(kind, partial(make, dtype=torch.int8), RuntimeError, name, "float64", "int8")
        yield row(kind, partial(make, dtype="half"), TypeError, name, "torch.dtype", "'half'")
        for bad, error, words in (
            ({"forget_bias": NAN}, ValueError, ("finite", "nan")),
            ({"forget_bias": "1"}, TypeError, ("real number", "'1'")),
            ({"forget_bias": 1.0, "bias": False}, ValueError, ("1.0", "bias=False")),
        ):
            yield row(kind, partial(make, **bad), error, name, "forget_bias", *words)
        module, x = kind(3, 2, dtype=torch.float64), numbers(5, 3)
        call = module
        h = numbers(5, 2) if kind is LayerNormLSTMCell else numbers(1, 2)
        yield row(kind, partial(call, 1.0), TypeError, name, "tensor", "float")
        yield row(kind, partial(call, x[:, :2]), RuntimeError, name, "(*, 3)", "(5, 2)")
        yield row(kind, partial(call, x[0, 0]), ValueError, name, "dimensions", "()")
        other, shape = (x[0], "(3,)") if kind is LayerNormLSTM else (x[None], "(1, 5, 3)")
        yield row(kind, partial(call, other), ValueError, name, "dimensions", shape)
        yield row(kind, partial(call, x.to_sparse()), RuntimeError, name, "dense", "sparse")
        yield row(kind, partial(call, x.float()), ValueError, name, "float64", "float32")
        yield row(kind, partial(call, x.to(META)), RuntimeError, name, "cpu", META)
        yield row(kind, partial(call, x, (h, None)), TypeError, name, "c ", "tensor", "NoneType")
        yield row(kind, partial(call, x, h), TypeError, name, "pair of tensors", "Tensor")
        yield row(kind, partial(call, x, (h,)), TypeError, name, "pair of tensors", "1 of them")
        wrong = numbers(3, 2)
        shape = str(tuple(h.shape))
        yield row(kind, partial(call, x, (wrong, h)), RuntimeError, name, "h ", shape, "(3, 2)")
        yield row(kind, partial(call, x, (h, wrong)), RuntimeError, name, "c ", shape, "(3, 2)")
        yield row(kind, partial(call, x, (h, h.half())), ValueError, name, "float64", "float16")
        yield row(kind, partial(call, x, (h, h.to(META))), RuntimeError, name, "c ", "cpu", META)
    lstm_module = partial(LayerNormLSTM, 3, 2)
    name = "LayerNormLSTM"
    for bad, error, words in (
        ({"num_layers": 0}, ValueError, ("num_layers", "at least 1", "0")),
        ({"batch_first": 1}, TypeError, ("batch_first", "True or False", "1")),
        ({"bidirectional": "no"}, TypeError, ("bidirectional", "'no'")),
        ({"implementation": None}, ValueError, ("'fused' or 'plain'", "None")),
        ({"dropout": 2}, ValueError, ("dropout", "0.0 and 1.0", "2")),
        ({"dropout": "1"}, TypeError, ("dropout", "real number", "'1'")),
    ):
        yield row(LayerNormLSTM, partial(lstm_module, **bad), error, name, *words)
    for first, shape in ((False, (0, 5, 3)), (True, (5, 0, 3)), (True, (0, 3))):
        empty = partial(LayerNormLSTM(3, 2, batch_first=first), torch.ones(shape))
        yield row(LayerNormLSTM, empty, RuntimeError, name, "at least one step", str(shape))
    packed, h = pack_sequence([torch.ones(4, 3)]), torch.ones(1, 2, 2)
    bad = partial(LayerNormLSTM(3, 2), packed, (h, h))
    yield row(LayerNormLSTM, bad, RuntimeError, name, "h ", "(1, 1, 2)", "(1, 2, 2)")
    bad = partial(LayerNormLSTM(2, 2), packed)
    yield row(LayerNormLSTM, bad, RuntimeError, name, "data", "(*, 2)", "(4, 3)")


# The transformer.

BLOCKS = {
    tf.PostLNBlock: tf.PostLNBlock,
    tf.PreLNBlock: tf.PreLNBlock,
    tf.PeriLNBlock: tf.PeriLNBlock,
    tf.DeepNormBlock: partial(tf.DeepNormBlock, num_layers=2),
}


def of_blocks() -> Iterator[Row]:
    for kind, make in BLOCKS.items():
        name = kind.__name__
        yield row(kind, partial(make, 0, 2), ValueError, name, "d_model", "at least 1", "0")
        yield row(kind, partial(make, 4.0, 2), TypeError, name, "d_model", "integer", "4.0")
        yield row(kind, partial(make, 4, 0), ValueError, name, "nhead", "at least 1", "0")
        yield row(kind, partial(make, 4, 3), ValueError, name, "multiple", "d_model=4", "nhead=3")
        yield row(kind, partial(make, 4, 2, 0), ValueError, name, "dim_feedforward", "1", "0")
        for options, error, words in (
            ({"dropout": 1.5}, ValueError, (name, "dropout", "0.0 and 1.0", "1.5")),
            ({"activation": "tanh"}, ValueError, (name, "activation", "'gelu'", "'tanh'")),
            ({"activation": None}, TypeError, (name, "activation", "callable", "None")),
            ({"layer_norm_eps": -1.0}, ValueError, (name, "eps", "at least 0", "-1.0")),
            ({"norm": "batch"}, ValueError, ("make_norm", "'layer_norm'", "'batch'")),
            ({"norm": 3}, TypeError, ("make_norm", "callable", "3", "int")),
            ({"norm": lambda _: 3}, TypeError, ("make_norm", "torch module", "int")),
            ({"qk_norm": "l1"}, ValueError, ("SelfAttention", "'l2'", "'l1'")),
            ({"bias": 0}, TypeError, (name, "bias", "True or False", "0")),
        ):
            yield row(kind, partial(make, 4, 2, **options), error, *words)
    # All blocks inherit their call.
    module = tf.PostLNBlock(4, 2, 3, dtype=torch.float64)
    owners = ("PostLNBlock",)
    yield from of_sequences(tf.PostLNBlock, module, "src_mask", "src_key_padding_mask", owners)
    deep = partial(tf.DeepNormBlock, 4, 2)
    name = "DeepNormBlock"
    bad = partial(deep, num_layers=0)
    yield row(tf.DeepNormBlock, bad, ValueError, name, "num_layers", "at least 1", "0")
    yield row(tf.TransformerBlock, partial(tf.TransformerBlock, 4, 2), TypeError, "abstract")


def of_sequences(
    kind: Any, call: Callable[..., Any], mask: str, padding: str, owners: tuple[str, ...]
) -> Iterator[Row]:
    """Input that every function or module that takes sequences rejects when it's called."""
    x = numbers(2, 3, 4)
    sees = "attention"
    yield row(kind, partial(call, 1.0), TypeError, *owners, "src", "tensor", "float")
    yield row(kind, partial(call, x[..., :3]), RuntimeError, *owners, "(N, L, 4)", "(2, 3, 3)")
    yield row(kind, partial(call, x[0, 0]), RuntimeError, *owners, "(L, 4)", "(4,)")
    yield row(kind, partial(call, x[None]), RuntimeError, *owners, "(L, 4)", "(1, 2, 3, 4)")
    yield row(kind, partial(call, x.float()), RuntimeError, *owners, "float64", "float32")
    yield row(kind, partial(call, x.long()), RuntimeError, *owners, "float64", "int64")
    yield row(kind, partial(call, x.to(META)), RuntimeError, *owners, "cpu", META)
    hides = torch.zeros(3, 3, dtype=torch.bool)
    for options, error, words in (
        ({"is_causal": 1}, TypeError, ("is_causal", "True or False", "1")),
        ({"need_weights": 1}, TypeError, ("need_weights", "True or False", "1")),
        ({mask: numbers(2, 3, 3)}, RuntimeError, (sees, "(4, 3, 3)", "(2, 3, 3)")),
        ({padding: [False]}, TypeError, (sees, "padding mask", "tensor", "list")),
        ({padding: hides[0]}, RuntimeError, (sees, "padding", "(2, 3)", "(3,)")),
        ({mask: True}, TypeError, (sees, "mask", "tensor", "bool")),
        ({mask: hides[:2]}, RuntimeError, (sees, "(3, 3)", "(2, 3)")),
        ({mask: hides.int()}, RuntimeError, (sees, "bool or floating", "int32")),
        ({mask: hides.to(META)}, RuntimeError, (sees, "cpu", META)),
        ({padding: hides}, RuntimeError, (sees, "padding", "(2, 3)", "(3, 3)")),
        ({padding: hides[:2].long()}, RuntimeError, (sees, "bool or floating", "int64")),
    ):
        yield row(kind, partial(call, x, **options), error, *words)


def of_attention() -> Iterator[Row]:
    kind, name = tf.SelfAttention, "SelfAttention"
    for arguments, options, error, words in (
        ((0, 2), {}, ValueError, ("embed_dim", "at least 1", "0")),
        ((4, 0), {}, ValueError, ("num_heads", "at least 1", "0")),
        ((4, 2.0), {}, TypeError, ("num_heads", "integer", "2.0")),
        ((4, 3), {}, ValueError, ("multiple", "embed_dim=4", "num_heads=3")),
        ((4, 2), {"dropout": -1}, ValueError, ("dropout", "0.0 and 1.0", "-1")),
        ((4, 2), {"bias": 1}, TypeError, ("bias", "True or False", "1")),
        ((4, 2), {"qk_norm": "l1"}, ValueError, ("qk_norm", "'l2'", "'l1'")),
        ((4, 2), {"qk_scale": NAN}, ValueError, ("qk_scale", "nan")),
    ):
        yield row(kind, partial(kind, *arguments, **options), error, name, *words)
    module = kind(4, 2, dtype=torch.float64)
    yield from of_sequences(kind, module, "attn_mask", "key_padding_mask", (name,))
    f, owner = tf.dot_product_attention, "dot_product_attention"
    q, k = numbers(2, 3, 4), numbers(2, 5, 4)
    for arguments, options, error, words in (
        ((1.0, k, k), {}, TypeError, ("query", "tensor", "float")),
        ((q, k, k, True), {}, TypeError, ("mask", "tensor", "bool")),
        ((q, k.to(META), k), {}, RuntimeError, ("key", "cpu", META)),
        ((q, k, k.long()), {}, RuntimeError, ("value", "floating", "int64")),
        ((q, k[..., :3], k), {}, RuntimeError, ("(*, S, d)", "(2, 3, 4)", "(2, 5, 3)")),
        ((q, k, k[:, :4]), {}, RuntimeError, ("(*, S, e)", "(2, 5, 4)", "(2, 4, 4)")),
        ((q[0, 0], k, k), {}, RuntimeError, ("(*, L, d)", "(4,)")),
        ((q, numbers(3, 5, 4), k), {}, RuntimeError, ("broadcast", "(2, 3, 4)", "(3, 5, 4)")),
        ((q, k, k, k[0]), {}, RuntimeError, ("mask", "(*, 3, 5)", "(5, 4)")),
        ((q, k, k, numbers(7, 2, 3, 5)), {}, RuntimeError, ("mask", "(7, 2, 3, 5)")),
        ((q, k, k, torch.ones(3, 5).int()), {}, RuntimeError, ("mask", "bool", "int32")),
        ((q, k, k), {"is_causal": 1}, TypeError, ("is_causal", "True or False", "1")),
        ((q, k, k), {"dropout": 2.0}, ValueError, ("dropout", "0.0 and 1.0", "2.0")),
        ((q, k, k), {"scale": "1"}, TypeError, ("scale", "real number", "'1'")),
        ((q, k, k), {"scale": NAN}, ValueError, ("scale", "nan")),
    ):
        yield row(f, partial(f, *arguments, **options), error, owner, *words)


def of_models() -> Iterator[Row]:
    kind, name, small = tf.TransformerEncoder, "TransformerEncoder", {"dim_feedforward": 3}
    pre = tf.PreLNBlock
    yield row(kind, partial(kind, nn.Linear, 2, 4, 2), TypeError, name, "block", "Linear")
    yield row(kind, partial(kind, "pre", 2, 4, 2), TypeError, name, "block", "'pre'")
    yield row(kind, partial(kind, pre, 0, 4, 2), ValueError, name, "num_layers", "at least 1", "0")
    yield row(kind, partial(kind, pre, 2, 4, 3), ValueError, "PreLNBlock", "multiple", "nhead=3")
    bad = partial(kind, pre, 2, 4, 2, final_norm=1)
    yield row(kind, bad, TypeError, name, "final_norm", "True or False", "1")
    module = kind(pre, 1, 4, 2, **small, dtype=torch.float64)
    yield from of_sequences(kind, module, "mask", "src_key_padding_mask", ("PreLNBlock",))
    # On the meta device, which doesn't support autocast.
    module, x = tf.SelfAttention(4, 2, device=META), numbers(2, 3, 4).to(META)
    yield row(tf.SelfAttention, partial(module, x), RuntimeError, "float32", "float64")
    kind, name = tf.CausalLanguageModel, "CausalLanguageModel"
    for sizes, word in (
        ((0, 3, 4), "vocab_size"),
        ((5, 0, 4), "max_length"),
        ((5, 3, 0), "d_model"),
    ):
        yield row(kind, partial(kind, *sizes, 2, 1), ValueError, name, word, "at least 1", "0")
    bad = partial(kind, 5, 3, 4, 2, 0)
    yield row(kind, bad, ValueError, "TransformerEncoder", "num_layers", "at least 1", "0")
    model = kind(5, 3, 4, 2, 1, **small)
    tokens = torch.tensor([[0, 4, 1]])
    yield row(kind, partial(model, [0]), TypeError, name, "tokens", "tensor", "list")
    yield row(kind, partial(model, tokens.float()), RuntimeError, name, "int64", "float32")
    yield row(kind, partial(model, tokens > 0), RuntimeError, name, "int64", "bool")
    yield row(kind, partial(model, tokens[0, 0]), RuntimeError, name, "(N, L)", "()")
    yield row(kind, partial(model, tokens[None]), RuntimeError, name, "(N, L)", "(1, 1, 3)")
    longer = torch.zeros(1, 4).long()
    yield row(kind, partial(model, longer), RuntimeError, name, "at most 3", "(1, 4)")
    yield row(kind, partial(model, tokens + 1), IndexError, name, "0 to 4", "1 to 5")
    yield row(kind, partial(model, tokens - 1), IndexError, name, "0 to 4", "-1 to 3")
    yield row(kind, partial(model, tokens.to(META)), RuntimeError, name, "cpu", META)


def of_conversion() -> Iterator[Row]:
    layer = partial(nn.TransformerEncoderLayer, 4, 2, 3)
    with_rms = layer(batch_first=True)
    with_rms.norm2 = nn.RMSNorm(4)
    with_rms_first = layer(batch_first=True)
    with_rms_first.norm1 = nn.RMSNorm(4)

    f, name = tf.block_from_torch, "block_from_torch"
    yield row(f, partial(f, nn.Linear(4, 4)), TypeError, name, "TransformerEncoderLayer", "Linear")
    yield row(f, partial(f, layer()), ValueError, name, "batch_first=True", "batch_first=False")
    yield row(f, partial(f, with_rms), TypeError, name, "LayerNorm", "RMSNorm")
    yield row(f, partial(f, with_rms_first), TypeError, name, "LayerNorm", "RMSNorm")


def of_starting_values() -> Iterator[Row]:
    f, name, model = tf.xavier_init_, "xavier_init_", nn.Linear(3, 2)
    yield row(f, partial(f, None), TypeError, name, "torch module", "NoneType")
    yield row(f, partial(f, model, rng=0), TypeError, name, "numpy.random.Generator", "int")
    bad = partial(f, model, zero_query_key=1)
    yield row(f, bad, TypeError, name, "zero_query_key", "True or False", "1")
    f, name = tf.deepnorm_init_, "deepnorm_init_"
    yield row(f, partial(f, None, 1.0), TypeError, name, "torch module", "NoneType")
    yield row(f, partial(f, model, -1.0), ValueError, name, "beta", "0.0 and inf", "-1.0")
    yield row(f, partial(f, model, "1"), TypeError, name, "beta", "real number", "'1'")
    yield row(f, partial(f, model, 1.0, rng=0), TypeError, name, "numpy.random.Generator", "int")


# The rest: data, training and the helpers for chapters.

RNG = np.random.default_rng(0)


def of_helpers() -> Iterator[Row]:
    f, name = adding.adding_problem, "adding_problem"
    yield row(f, partial(f, RNG, 0, 5), ValueError, name, "at least 1", "got 0")
    yield row(f, partial(f, RNG, 3, 1), ValueError, name, "at least 2", "1")
    yield row(f, partial(f, RNG, 3.0, 5), TypeError, name, "examples", "integer", "3.0")
    yield row(f, partial(f, 0, 3, 5), TypeError, name, "numpy.random.Generator", "int")
    yield row(digits.split, partial(digits.split, -1), ValueError, "split", "at least 0", "-1")
    yield row(digits.split, partial(digits.split, 0.5), TypeError, "split", "integer", "0.5")
    f, name, codes = text.windows, "windows", torch.arange(9)
    yield row(f, partial(f, RNG, codes, 0, 3), ValueError, name, "count", "at least 1", "0")
    yield row(f, partial(f, RNG, codes, 3, 0), ValueError, name, "length", "at least 1", "0")
    yield row(f, partial(f, RNG, codes, 1, 9), ValueError, name, "longer", "length 9", "9 char")
    yield row(f, partial(f, RNG, codes, 1, 2.5), TypeError, name, "length", "integer", "2.5")
    yield row(f, partial(f, 0, codes, 1, 2), TypeError, name, "numpy.random.Generator", "int")
    yield from of_training()
    f, name = measurements.read, "read"
    yield row(f, partial(f, "nothing"), ValueError, name, "norms", "'nothing'")
    f, name = notebook.set_up, "set_up"
    yield row(f, partial(f, 0.5), TypeError, name, "seed", "integer", "0.5")
    yield row(f, partial(f, -1), ValueError, name, "seed", "0 to", "-1")
    f, name = notebook.checks, "checks"
    yield row(f, partial(f, {}), ValueError, name, "at least one statement", "none")
    for bad in (1, 0.0, "yes", None, np.array([True, False])):
        yield row(f, partial(f, {"a": bad}), TypeError, name, "True or False for 'a'", repr(bad))
    f, name = notebook.table, "table"
    show = partial(f, columns=("row", "a", "b"))
    yield row(f, partial(show, {}), ValueError, name, "at least one row", "none")
    yield row(f, partial(show, {"a": (1, 2, 3)}), ValueError, name, "2 values", "'a'", "got 3")
    yield row(f, partial(show, {"a": (1, 2)}, digits=(1,)), ValueError, name, "digits", "2", "1")
    for f in (worked.mean, worked.variance, worked.normalize):
        yield row(f, partial(f, [[1.0]]), ValueError, "(H,)", "(1, 1)")
        yield row(f, partial(f, [1.0, NAN]), ValueError, "finite", "nan")
    yield row(worked.normalize, partial(worked.normalize, [1.0], -1.0), ValueError, "eps", "-1.0")
    f = worked.affine
    yield row(
        f, partial(f, [1.0], [1.0, 2.0], [1.0]), ValueError, "affine", "equal length", "1, 2, 1"
    )


def of_training() -> Iterator[Row]:
    t, model = training, nn.Linear(2, 1)
    sgd = torch.optim.SGD(model.parameters(), 0.1)
    f, name = t.fit, "fit"
    run = partial(f, model, [], lambda model, _: model.weight.sum(), sgd)
    yield row(f, partial(run, every=-1), ValueError, name, "every", "at least 0", "-1")
    yield row(f, partial(run, every=0.5), TypeError, name, "every", "integer", "0.5")
    yield row(f, partial(run, clip=0), ValueError, name, "clip", "positive", "0")
    bad = partial(f, None, [], lambda *_: None, sgd)
    yield row(f, bad, TypeError, name, "torch module", "NoneType")
    f, name, x = t.minibatches, "minibatches", torch.arange(5)

    def first(*arguments: Any, **options: Any) -> Any:
        return next(t.minibatches(*arguments, **{"batch_size": 2, "steps": 1, **options}))

    yield row(f, partial(first, RNG, x, x[:4]), ValueError, name, "equal length", "[4, 5]")
    yield row(f, partial(first, RNG), ValueError, name, "equal length", "[]")
    yield row(f, partial(first, RNG, x, batch_size=6), ValueError, name, "1 to 5", "6")
    yield row(f, partial(first, RNG, x, batch_size=0), ValueError, name, "1 to 5", "0")
    yield row(f, partial(first, RNG, x, batch_size=2.0), TypeError, name, "integer", "2.0")
    yield row(f, partial(first, RNG, x, steps=-1), ValueError, name, "at least 0", "-1")
    yield row(f, partial(first, 0, x), TypeError, name, "numpy.random.Generator", "int")
    f, name = t.decay_groups, "decay_groups"
    yield row(f, partial(f, None, 0.1), TypeError, name, "torch module", "NoneType")
    yield row(f, partial(f, model, -0.1), ValueError, name, "at least 0", "-0.1")
    yield row(f, partial(f, model, "1"), TypeError, name, "real number", "'1'")
    f, name = debugging.first_nonfinite, "first_nonfinite"
    yield row(f, partial(f, None, list), TypeError, name, "torch module", "NoneType")
    yield row(f, partial(f, model, model.weight), TypeError, name, "step", "function", "Parameter")
    f, name = t.initialize_, "initialize_"
    yield row(f, partial(f, model, 0), TypeError, name, "numpy.random.Generator", "int")
    yield row(f, partial(f, None, RNG), TypeError, name, "torch module", "NoneType")
    f, name = t.warm_up, "warm_up"
    yield row(f, partial(f, -1), ValueError, name, "at least 0", "-1")
    yield row(f, partial(f, 1.5), TypeError, name, "steps", "integer", "1.5")


TABLE = [
    line
    for lines in (
        of_reference,
        of_reference_steps,
        of_rows,
        of_gpu_kernels,
        of_channels,
        of_layers,
        of_folding,
        of_steps,
        of_grus,
        of_lstms,
        of_blocks,
        of_attention,
        of_models,
        of_conversion,
        of_starting_values,
        of_helpers,
    )
    for line in lines()
]

# Public names that can't be given bad input, and why.
NOTHING_TO_REFUSE = {
    "FLOATING_DTYPES": "a constant",
    "HALF_DTYPES": "a constant",
    "STEPS": "a constant; its functions are in the table",
    "THREADS": "a constant",
    "BASELINE": "a constant",
    "BlockOptions": "a type; the blocks check its entries",
    "BatchNormResult": "a result",
    "LayerNormResult": "a result",
    "History": "a result",
    "NonFinite": "a result",
    "Digits": "a result",
    "Split": "a result",
    "Text": "a result",
    "load_digits": "takes nothing",
    "load_text": "takes nothing",
    "Record": "a result",
    "machine": "takes nothing",
    "names": "takes nothing",
    "write": "is called by the benchmarks alone",
    "Equation": "a result",
    "number": "is given what was checked",
}
MODULES = (
    reference,
    lstm,
    functional,
    gpu,
    layers,
    recurrent,
    tf,
    adding,
    digits,
    text,
    debugging,
    training,
    measurements,
    notebook,
    worked,
)


def test_every_public_name_has_rows_or_says_why_not() -> None:
    public = {name: getattr(module, name) for module in MODULES for name in module.__all__}
    # `reference` and `functional` use the same names: compare the objects, not the names.
    things = [(name, getattr(m, name)) for m in MODULES for name in m.__all__]
    tried = [line.of for line in TABLE]
    without = {name for name, thing in things if not any(thing is of for of in tried)}
    assert without == NOTHING_TO_REFUSE.keys(), public.keys()
    assert all(any(of is thing for _, thing in things) for of in tried)


@pytest.mark.parametrize(
    "line", TABLE, ids=[f"{line.of.__name__}-{i}" for i, line in enumerate(TABLE)]
)
def test_bad_input_is_refused_by_name(line: Row) -> None:
    with pytest.raises(line.error) as caught:
        line.call()
    message = str(caught.value)
    owner, *others = line.words
    assert any(name in message for name in owner.split("|")), message
    missing = [word for word in others if word not in message]
    assert not missing, f"{missing} not in: {message}"


PACKAGE = Path(__file__).resolve().parents[2] / "lnbook"
SOURCES = [
    path for path in sorted(PACKAGE.rglob("*.py")) if path.stem not in ("exercises", "checker")
]


def raised_messages(source: str) -> Iterator[str]:
    """The fixed text of every error message about bad input that's written in a `raise` statement.

    It leaves out `NotYet`, which is about a reader's answer, `NotImplementedError`, which is raised
    by functions that only compiled code can call, and `SystemExit`.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
            if ast.unparse(node.exc.func) in ("NotYet", "NotImplementedError", "SystemExit"):
                continue
            parts = ast.walk(node.exc.args[0])
            yield "".join(
                part.value
                for part in parts
                if isinstance(part, ast.Constant) and isinstance(part.value, str)
            )


def test_every_message_says_what_was_expected_and_what_was_given() -> None:
    messages = [text for path in SOURCES for text in raised_messages(path.read_text())]
    assert len(messages) > 200
    assert [text for text in messages if "expected" not in text or "but " not in text] == []


def test_signatures_of_checked_steps_are_those_of_the_equations() -> None:
    for step in (recurrent.ba_step, recurrent.lstm_step):
        assert [*inspect.signature(step).parameters] == ["x", "h", "c", "parameters", "eps"]
