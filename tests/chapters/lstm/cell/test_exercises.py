"""The checkers of the chapter on the LSTM's cell."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from lnbook.chapters.lstm.cell import exercises
from lnbook.chapters.shared.checker import Verdict


def test_forget_bias() -> None:
    right = exercises.FORGET_BIAS
    assert (1 / (1 + np.exp(-right))) ** 100 == pytest.approx(0.5)
    for answer in (right, torch.tensor(right), np.float64(right), 4.97, 4.96, 4.965):
        assert exercises.check_forget_bias(answer).correct
    for message, wrong in exercises.FORGET_BIAS_MISTAKES.items():
        assert exercises.check_forget_bias(wrong) == Verdict(False, message)
    for answer in (2, 5, 50, -1000.0):
        assert "after 100 steps" in exercises.check_forget_bias(answer).message


def one_call(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    size = a.shape[-1] // 4
    return functional.layer_norm(a.view(-1, 4, size), (size,)).view_as(a) * weight + bias


def group_norm(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.group_norm(a, 4, weight, bias)


def by_the_module(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    size = a.shape[-1] // 4
    norm = torch.nn.LayerNorm(size, dtype=a.dtype)
    return norm(a.view(-1, 4, size)).flatten(1) * weight + bias


def by_hand(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    z = a.unflatten(1, (4, -1))
    z = z - z.mean(2, keepdim=True)
    z = z / torch.sqrt(z.square().mean(2, keepdim=True) + 1e-5)
    return z.flatten(1) * weight + bias


@pytest.mark.parametrize("function", [one_call, group_norm, by_the_module, by_hand])
def test_norm_each_gate_right(function: exercises.Norm) -> None:
    assert exercises.check_norm_each_gate(function).correct


@pytest.mark.parametrize(("message", "wrong"), exercises.NORM_MISTAKES.items())
def test_norm_each_gate_wrong(message: str, wrong: exercises.Norm) -> None:
    assert exercises.check_norm_each_gate(wrong) == Verdict(False, message)


def four_calls(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    size = a.shape[-1] // 4
    parts = zip(a.chunk(4, 1), weight.chunk(4), bias.chunk(4), strict=True)
    return torch.cat([functional.layer_norm(z, (size,), w, b) for z, w, b in parts], dim=1)


def in_place(a: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return a.copy_(one_call(a, weight, bias))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (four_calls, "it takes 4 calls"),
        (in_place, "changes its input"),
        (lambda _a, _w, _b: "y", "should return a tensor"),
        (lambda a, w, b: one_call(a, w, b).view(len(a), 4, -1), "has the shape (3, 4, 5)"),
        (lambda a, w, b: 1.01 * one_call(a, w, b), "differ from those of four norms"),
    ],
)
def test_norm_each_gate_other_faults(function: Any, message: str) -> None:
    verdict = exercises.check_norm_each_gate(function)
    assert not verdict.correct
    assert message in verdict.message


def layers(
    *,
    copied: bool = True,
    aliased: bool = False,
    mistake: str = "",
    stacked: bool = False,
) -> Callable[..., Any]:
    """A function that runs the layers, with the given faults."""

    def run(cells: Any, x: Tensor, states: Any = None) -> Any:
        if states is None or mistake == "zeros":
            zeros = [x.new_zeros(len(x), cell.hidden_size) for cell in cells]
            states = zeros, zeros if aliased else list(zeros)
        h, c = (list(states[0]), list(states[1])) if copied else states
        outputs = []
        for x_t in x.unbind(1):
            y = x_t
            for layer, cell in enumerate(cells):
                old = (h[layer], c[layer]) if mistake != "forgetful" else (0 * h[layer],) * 2
                h[layer], c[layer] = cell(x_t if mistake == "parallel" else y, old)
                y = h[layer]
            outputs.append(h[0] if mistake == "first" else y)
        ends = (c, h) if mistake == "swapped" else (h, c)
        if mistake == "float32":
            ends = [[state.float() for state in layer] for layer in ends]
        if stacked:
            ends = torch.stack(ends[0]), torch.stack(ends[1])
        return torch.stack(outputs, 1), ends

    return run


def test_layers_right() -> None:
    assert exercises.check_layers(layers()).correct
    assert exercises.check_layers(layers(stacked=True)).correct


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (layers(aliased=True, copied=False), "Without states, h and c are one and the same list"),
        (layers(copied=False), "changed the caller's states"),
        (layers(mistake="parallel"), "second layer reads the input"),
        (layers(mistake="zeros"), "it starts from zeros"),
        (layers(mistake="first"), "those of the first layer"),
        (layers(mistake="swapped"), "the states returned are not those"),
        (layers(mistake="float32"), "the states returned are not those"),
        (lambda _cells, x, _states=None: x, "the pair (outputs, states)"),
        (lambda _cells, x, _states=None: (x.transpose(0, 1), None), "has the shape (4, 2, 3)"),
        (lambda _cells, x: (x, None), "outputs are not those"),
    ],
)
def test_layers_wrong(function: Any, message: str) -> None:
    verdict = exercises.check_layers(function)
    assert not verdict.correct
    assert message in verdict.message


def test_layers_that_hand_nothing_on() -> None:
    def forgetful(cells: Any, x: Tensor, states: Any = None) -> Any:
        run = layers()
        outputs = [run(cells, x[:, t : t + 1], states) for t in range(x.shape[1])]
        return torch.cat([output for output, _ in outputs], 1), outputs[-1][1]

    assert "not handed from step to step" in exercises.check_layers(forgetful).message


def test_layers_tells_of_tensors_changed_in_place() -> None:
    def run(cells: Any, x: Tensor, states: Any = None) -> Any:
        copied = isinstance(states, tuple) and isinstance(states[0], list)
        return layers(copied=copied or states is None)(cells, x, states)

    verdict = exercises.check_layers(run)
    assert "With states in tensors: your function changed" in verdict.message


def test_layers_tells_of_an_error() -> None:
    def run(cells: Any, x: Tensor) -> Any:
        return layers()(cells, x)

    assert "With states in lists, your function raised TypeError" in (
        exercises.check_layers(run).message
    )
