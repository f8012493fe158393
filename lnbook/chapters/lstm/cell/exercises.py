"""The checkers for the chapter on the LSTM cell."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer, running
from lnbook.recurrent import LayerNormLSTMCell
from lnbook.training.initialization import initialize_

__all__ = ["check_forget_bias", "check_forgetting", "check_layers", "check_norm_each_gate"]

STEPS_TO_HALF = 100
GATE = 0.5 ** (1 / STEPS_TO_HALF)
FORGET_BIAS = float(np.log(GATE / (1 - GATE)))
FORGET_BIAS_MISTAKES = {
    "That's the gate itself. Which bias gives a sigmoid of that size?": GATE,
    "This takes 0.005 away at each of the 100 steps. But the gate multiplies at every step, "
    "so you need the 100th root of one half.": float(np.log(0.995 / 0.005)),
    "Check the sign: with this bias, the gate is nearly closed.": -FORGET_BIAS,
    "You took the logarithm to base 10. Use the natural one.": FORGET_BIAS / float(np.log(10.0)),
    "This gate is at 0.99, and 0.37 is left at the end. The question asks for one half.": float(
        np.log(0.99 / 0.01)
    ),
    "This forgets half at every step: the gate is at 0.5.": 0.0,
}


@checker
def check_forget_bias(bias: Any = None) -> str:
    """Check the bias that makes a forget gate keep half of the cell over 100 steps.

    Args:
        bias: one number; two decimals are enough.

    Example:
        >>> check_forget_bias(0.0)
        Not yet. This forgets half at every step: the gate is at 0.5.
    """
    answer = as_array(bias, (), "Your bias")
    with np.errstate(over="ignore"):
        gate = 1.0 / (1.0 + np.exp(-float(answer)))
    left = gate**STEPS_TO_HALF
    judge(
        answer,
        np.array(FORGET_BIAS),
        {text: np.array(wrong) for text, wrong in FORGET_BIAS_MISTAKES.items()},
        otherwise=f"With this bias the gate is at {gate:.4f}, "
        f"and {left:.2g} is left after 100 steps.",
        tolerance=0.0125,
    )
    return f"The gate is at {gate:.4f}, and {left:.2f} is left after 100 steps."


STEPS, VARIANCE = 200, 0.1
IN_BA = (1 + STEPS * VARIANCE) ** -0.5
IN_CARRIED = (1 + VARIANCE) ** (-STEPS / 2)
FORGETTING_MISTAKES: Mapping[str, tuple[float, float]] = {
    "You swapped the two cells.": (IN_CARRIED, IN_BA),
    "Both are squared. A norm divides by the standard deviation, not by the variance.": (
        IN_BA**2,
        IN_CARRIED**2,
    ),
    "Ba's share is squared. The norm divides by the standard deviation, not by the variance.": (
        IN_BA**2,
        IN_CARRIED,
    ),
    "The carried share is squared. Each step divides by the square root of 1 + v.": (
        IN_BA,
        IN_CARRIED**2,
    ),
    "In the carried cell the norm divides at every one of the 200 steps, not just once.": (
        IN_BA,
        IN_BA,
    ),
    "In Ba's cell nothing divides the carried state. The norm divides once, on the way out.": (
        IN_CARRIED,
        IN_CARRIED,
    ),
    "Ba's cell starts with variance 1. Add that to the variance of the new content.": (
        (STEPS * VARIANCE) ** -0.5,
        IN_CARRIED,
    ),
    "In Ba's cell you added standard deviations. Independent terms add their variances.": (
        1 / (1 + STEPS * VARIANCE**0.5),
        IN_CARRIED,
    ),
    "Ba's cell carries all of the start, but the question is about the normalized cell: "
    "divide by its standard deviation.": (1.0, IN_CARRIED),
}


@checker
def check_forgetting(ba: Any = None, carried: Any = None) -> str:
    """Check how much of their initial state two cells keep over 200 steps with open forget gates.

    The content added at each step has variance 0.1, and the start has variance 1.

    Args:
        ba: the share of the initial state in the normalized state of Ba's cell; 2 percent off is
            fine.
        carried: the same for the cell that carries its normalized state.

    Example:
        >>> check_forgetting(ba=1.0, carried=1.1**-100)
        Not yet. Ba's cell carries all of the start, but the question is about the normalized \
cell: divide by its standard deviation.
    """
    judge(
        [as_array(ba, (), "The share in Ba's cell"), as_array(carried, (), "The carried share")],
        [IN_BA, IN_CARRIED],
        FORGETTING_MISTAKES,
        otherwise="Write down the variance of the cell before each norm, and divide the start by "
        "its square root. Both shares are positive.",
        tolerance=0.02,
        relative=True,
    )
    return (
        "One falls like one over the square root of time, the other exponentially, with the same "
        "open gates."
    )


Norm = Callable[[Tensor, Tensor, Tensor], Tensor]


def _each(a: Tensor) -> Tensor:
    size = a.shape[-1] // 4
    return functional.layer_norm(a.view(-1, 4, size), (size,)).view_as(a)


def _interleaved(a: Tensor) -> Tensor:
    size = a.shape[-1] // 4
    blocks = a.view(-1, size, 4).transpose(1, 2)
    return functional.layer_norm(blocks, (size,)).transpose(1, 2).reshape(a.shape)


def _over_gates(a: Tensor) -> Tensor:
    blocks = a.view(-1, 4, a.shape[-1] // 4).transpose(1, 2)
    return functional.layer_norm(blocks, (4,)).transpose(1, 2).reshape(a.shape)


def _over_groups_of_four(a: Tensor) -> Tensor:
    return functional.layer_norm(a.view(len(a), -1, 4), (4,)).view_as(a)


def _over_batch(a: Tensor) -> Tensor:
    return (a - a.mean(0)) / torch.sqrt(a.var(0, correction=0) + 1e-5)


NORM_MISTAKES: Mapping[str, Norm] = {
    "That's one norm over all 4H numbers. Each gate needs its own mean and variance.": (
        lambda a, w, b: functional.layer_norm(a, a.shape[-1:], w, b)
    ),
    "It mixes the gates. The H numbers of a gate are next to each other in the row, "
    "so view it as (N, 4, H), not as (N, H, 4).": lambda a, w, b: _interleaved(a) * w + b,
    "It normalizes across the four gates. Average over the H features of one gate.": (
        lambda a, w, b: _over_gates(a) * w + b
    ),
    "It normalizes groups of four neighbors. A gate has H features: view it as (N, 4, H).": (
        lambda a, w, b: _over_groups_of_four(a) * w + b
    ),
    "It normalizes over the batch.": lambda a, w, b: _over_batch(a) * w + b,
    "It ignores the weight and the bias.": lambda a, _w, _b: _each(a),
    "It ignores the weight.": lambda a, _w, b: _each(a) + b,
    "It ignores the bias.": lambda a, w, _b: _each(a) * w,
    "It adds the bias before multiplying by the weight.": lambda a, w, b: (_each(a) + b) * w,
    "It uses the weight and bias of the first gate for all four.": lambda a, w, b: (
        _each(a) * w[: len(w) // 4].repeat(4) + b[: len(b) // 4].repeat(4)
    ),
    "It applies weight and bias before the norm instead of after it.": (
        lambda a, w, b: _each(a * w + b)
    ),
}


@checker
def check_norm_each_gate(function: Norm) -> str:
    """Check a function that normalizes the four gates with one call to `layer_norm`.

    Calls `function(a, weight, bias)` with random tensors in float64 and counts the calls to
    PyTorch's norms.

    Args:
        function: takes `a` of shape `(N, 4H)` and `weight` and `bias` of shape `(4H,)`, returns
            the normalized gates in the shape of `a`.

    Example:
        >>> check_norm_each_gate(lambda a, weight, bias: weight * a + bias)
        Not yet. For a of shape (3, 20), the values differ from those of four norms.
    """
    rng = np.random.default_rng(17)
    for batch, size in ((3, 5), (4, 4), (1, 6)):
        shape = (batch, 4 * size)
        a = torch.from_numpy(rng.normal(1.0, 2.0, shape))
        weight, bias = torch.from_numpy(rng.normal(size=(2, 4 * size)))
        context = f"for a of shape {shape}"
        calls: list[str] = []
        with _Counting(calls):
            answer = run_answer(function, a, weight, bias, context=context, hint="a new tensor")
        if not isinstance(answer, Tensor):
            raise NotYet(f"It should return a tensor, but it returns {type(answer)!r}.")
        judge(
            as_array(answer.detach(), shape, "What your function returns"),
            (_each(a) * weight + bias).numpy(),
            {text: wrong(a, weight, bias).numpy() for text, wrong in NORM_MISTAKES.items()},
            otherwise=f"For a of shape {shape}, the values differ from those of four norms.",
        )
        if not calls:
            raise NotYet("The values are right. Now get them with one call to F.layer_norm.")
        if len(calls) > 1:
            raise NotYet(f"The values are right, but it takes {len(calls)} calls. One is enough.")
    return "Four norms, and no loop."


class _Counting(torch.overrides.TorchFunctionMode):
    """While active, records every call to one of PyTorch's norms."""

    def __init__(self, calls: list[str]) -> None:
        super().__init__()
        self.calls = calls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        # F.layer_norm calls torch.layer_norm, but the mode isn't active inside the outer call.
        if name in ("layer_norm", "group_norm", "native_layer_norm", "native_group_norm"):
            self.calls.append(name)
        return func(*args, **(kwargs or {}))


Layers = Callable[..., tuple[Tensor, Any]]
Cells = list[LayerNormLSTMCell]
EXAMPLES, LENGTH, SIZE = 2, 4, 3
LAYER_MISTAKES = {
    "h and c are the same list: writing to c overwrites h.": "aliased",
    "the second layer reads the input, not the output of the first.": "parallel",
    "it starts from zeros, not from the given states.": "zeros",
    "the outputs are those of the first layer.": "first",
    "the states aren't passed from one step to the next.": "forgetful",
}


@checker
def check_layers(function: Layers) -> str:
    """Check a function that runs stacked cells over a sequence.

    Calls `function(cells, x)` and `function(cells, x, states)` with two layers in float64, the
    states once as lists and once as tensors of shape `(layers, N, H)`.

    Args:
        function: takes the cells, `x` of shape `(N, L, D)` and optionally states `(h, c)`;
            returns the outputs of the top layer, `(N, L, H)`, and the states after the last step.

    Example:
        >>> check_layers(lambda cells, x, states=None: (x, states))
        Not yet. Without states, the outputs aren't those of the top layer.
    """
    rng = np.random.default_rng(23)
    cells = [initialize_(LayerNormLSTMCell(SIZE, SIZE, dtype=torch.float64), rng) for _ in "12"]
    x = torch.from_numpy(rng.normal(size=(EXAMPLES, LENGTH, SIZE)))
    start = torch.from_numpy(rng.normal(size=(2, 2, EXAMPLES, SIZE)))
    lists, tensors = tuple(map(list, start.clone())), tuple(start.clone())
    with torch.no_grad():
        _check_run("Without states", function, cells, x, None, torch.zeros_like(start))
        _check_run("With states in lists", function, cells, x, lists, start)
        _check_run("With states in tensors", function, cells, x, tensors, start)
    return "Outputs and states are right, and the caller's states are unchanged."


def _check_run(
    name: str, function: Layers, cells: Cells, x: Tensor, states: Any, start: Tensor
) -> None:
    """Check one run from `states`, whose values are those of `start`, `(2, layers, N, H)`."""
    with running(f"{name}, your function"):
        answer = function(cells, x.clone()) if states is None else function(cells, x, states)
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise NotYet("Your function should return a pair (outputs, states).")
    outputs, ends = answer
    given = as_array(outputs, (EXAMPLES, LENGTH, SIZE), "What your function returns first")
    if states is not None and not _equal(states, start):
        raise NotYet(f"{name}: your function changed the caller's states. Make your own lists.")
    expected, expected_ends = _run(cells, x, start)
    judge(
        given,
        expected.numpy(),
        {
            f"{name}, {text}": _run(cells, x, start, mistake)[0].numpy()
            for text, mistake in LAYER_MISTAKES.items()
        },
        otherwise=f"{name}, the outputs aren't those of the top layer.",
    )
    if not _equal(ends, expected_ends):
        raise NotYet(f"{name}, the returned states aren't the ones after the last step.")


def _run(cells: Cells, x: Tensor, start: Tensor, mistake: str = "") -> tuple[Tensor, Tensor]:
    """Return outputs and final states of the layers, possibly with a mistake."""
    if mistake == "zeros":
        start = torch.zeros_like(start)
    h, c = map(list, start)
    if mistake == "aliased":
        c = h
    outputs = []
    for step in x.unbind(1):
        x_t = step
        if mistake == "forgetful":
            h, c = map(list, start)
        for layer, cell in enumerate(cells):
            h[layer], c[layer] = cell(step if mistake == "parallel" else x_t, (h[layer], c[layer]))
            x_t = h[layer]
        outputs.append(h[0] if mistake == "first" else h[-1])
    return torch.stack(outputs, 1), torch.stack([torch.stack(h), torch.stack(c)])


def _equal(states: Any, expected: Tensor) -> bool:
    """Whether a pair of states, as lists or tensors, is the expected one."""
    try:
        given = torch.stack([torch.stack(list(state)) for state in states])
    except (TypeError, RuntimeError):  # no states at all, or of different shapes
        return False
    return given.shape == expected.shape and np.allclose(given, expected, rtol=0.0, atol=1e-9)
