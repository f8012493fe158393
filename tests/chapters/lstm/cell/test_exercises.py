"""The checkers for the chapter on the LSTM cell."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from lnbook.chapters.lstm.cell import exercises
from tests.helpers.verdicts import verdict_test


def one_call(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    size = a.shape[-1] // 4
    return functional.layer_norm(a.view(-1, 4, size), (size,)).view_as(a) * weight + bias


def group_norm(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.group_norm(a, 4, weight, bias)


def by_hand(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    z = a.unflatten(1, (4, -1))
    z = z - z.mean(2, keepdim=True)
    z = z / torch.sqrt(z.square().mean(2, keepdim=True) + 1e-5)
    return z.flatten(1) * weight + bias


def four_calls(
    a: Tensor, weight: Tensor, bias: Tensor, norm: Callable[..., Tensor] = functional.layer_norm
) -> Tensor:
    size = a.shape[-1] // 4
    parts = zip(a.chunk(4, 1), weight.chunk(4), bias.chunk(4), strict=True)
    return torch.cat([norm(z, (size,), w, b) for z, w, b in parts], dim=1)


def layers(*, copied=True, aliased=False, mistake="", end=lambda h, c: (h, c)):
    """A function that runs the layers, with the given bugs."""

    def run(cells: Any, x: Tensor, states: Any = None) -> Any:
        if states is None or mistake == "zeros":
            zeros = [x.new_zeros(len(x), cell.hidden_size) for cell in cells]
            states = zeros, zeros if aliased else list(zeros)
        h, c = (list(states[0]), list(states[1])) if copied else states
        outputs = []
        for x_t in x.unbind(1):
            y = x_t
            for layer, cell in enumerate(cells):
                read = x_t if mistake == "parallel" else y
                h[layer], c[layer] = cell(read, (h[layer], c[layer]))
                y = h[layer]
            outputs.append(h[0] if mistake == "first" else y)
        return torch.stack(outputs, 1), end(h, c)

    return run


def forgetful(cells: Any, x: Tensor, states: Any = None) -> Any:
    outputs = [layers()(cells, x_t[:, None], states) for x_t in x.unbind(1)]
    return torch.cat([output for output, _ in outputs], 1), outputs[-1][1]


def copies_only_lists(cells: Any, x: Tensor, states: Any = None) -> Any:
    return layers(copied=not states or isinstance(states[0], list))(cells, x, states)


ANSWERS = {
    exercises.check_forget_bias: [
        ("Correct.", torch.logit(torch.tensor(0.5) ** 0.01)),
        ("Correct.", 4.97),
        ("Correct.", 4.96),
        *exercises.FORGET_BIAS_MISTAKES.items(),
        ("0.49 is left after 100 steps", 4.94),
        ("0.51 is left after 100 steps", 5),
        ("and 0 is left after 100 steps", -1000.0),
    ],
    exercises.check_forgetting: [
        ("Correct.", 21**-0.5, 1.1**-100),
        ("Correct.", torch.tensor(0.218), 7.3e-5),
        *((text, *shares) for text, shares in exercises.FORGETTING_MISTAKES.items()),
        ("Write down the variance", 0.5, 0.5),
        ("Both shares are positive", 0.218, 0.0),
        ("The carried share is still missing", 0.218),
        ("The share in Ba's cell is still missing", ..., 7.3e-5),
    ],
    exercises.check_norm_each_gate: [
        ("Correct.", one_call),
        ("Correct.", group_norm),
        ("get them with one call", by_hand),
        *exercises.NORM_MISTAKES.items(),
        ("it takes 4 calls", four_calls),
        ("it takes 4 calls", partial(four_calls, norm=torch.layer_norm)),
        ("should return a tensor", lambda _a, _w, _b: "y"),
        ("differ from those of four norms", lambda a, w, b: 2e-5 + one_call(a, w, b)),
    ],
    exercises.check_layers: [
        ("Correct.", layers()),
        ("Correct.", layers(end=lambda h, c: (torch.stack(h), torch.stack(c)))),
        ("Without states, h and c are the same list", layers(aliased=True, copied=False)),
        ("changed the caller's states", layers(copied=False)),
        ("aren't passed from one step", forgetful),
        ("With states in tensors: your function changed", copies_only_lists),
        ("With states in lists, your function raised", lambda cells, x: layers()(cells, x)),
        ("second layer reads the input", layers(mistake="parallel")),
        ("it starts from zeros", layers(mistake="zeros")),
        ("those of the first layer", layers(mistake="first")),
        ("returned states aren't the ones", layers(end=lambda h, c: (c, h))),
        ("returned states", layers(end=lambda *e: [torch.stack(s).float() for s in e])),
        ("a pair (outputs, states)", lambda _cells, x, _states=None: x),
        ("outputs aren't those", lambda _cells, x: (x, None)),
    ],
}


def test_forgetting_matches_the_cells() -> None:
    """With many features and open gates, both formulas describe what the norms do."""
    generator = torch.Generator().manual_seed(3)
    one, other = torch.randn(2, 50_000, dtype=torch.float64, generator=generator)
    states = {"ba": (one, other), "carried": (one, other)}
    for _ in range(20):
        new = 0.1**0.5 * torch.randn(50_000, dtype=torch.float64, generator=generator)
        states = {name: tuple(c + new for c in pair) for name, pair in states.items()}
        states["carried"] = tuple(functional.layer_norm(c, c.shape) for c in states["carried"])
    for name, expected in (("ba", 3**-0.5), ("carried", 1.1**-10)):
        first, second = (functional.layer_norm(c, c.shape) for c in states[name])
        left = (first - second).norm() / (one - other).norm()
        assert left.item() == pytest.approx(expected, rel=0.02)


test_answers = verdict_test(ANSWERS)
