"""The chapter's kernels are correct and identical to those in its cells."""

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from lnbook import reference
from lnbook.chapters.practice.cpu_kernel import experiments

TEXT = Path(__file__).parents[4] / "book" / "practice" / "cpu-kernel.md"
SHAPES = [(1, 1), (7, 3), (40, 33), (64, 96)]


def arrays(shape):
    rng = np.random.default_rng(3)
    x, dy = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    weight, bias = (rng.normal(size=shape[1]).astype(np.float32) for _ in range(2))
    return x, dy, weight, bias


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("forward", "backward"),
    [
        (experiments.strict_forward, experiments.strict_backward),
        (experiments.fast_forward, experiments.fast_backward),
        (experiments.fast_forward, experiments.backward_ahead),
        (experiments.forward_blocks, experiments.backward_blocks),
    ],
)
def test_kernels(forward, backward, shape) -> None:
    x, dy, weight, bias = arrays(shape)
    y, dx = np.full_like(x, np.nan), np.full_like(x, np.nan)
    means, rstds = (np.empty(len(x), np.float32) for _ in range(2))
    forward(x, weight, bias, np.float32(1e-2), y, means, rstds)
    expected = reference.layer_norm(x, shape[1:], weight, bias, eps=1e-2)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)
    dweight, dbias = np.zeros_like(weight), np.zeros_like(bias)
    backward(dy, x, weight, means, rstds, dx, dweight, dbias)
    inputs = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in (x, weight, bias)]
    z = torch.nn.functional.layer_norm(inputs[0], shape[1:], *inputs[1:], eps=1e-2)
    grads = torch.autograd.grad(z, inputs, torch.tensor(dy, dtype=torch.float64))
    for found, grad in zip((dx, dweight, dbias), grads, strict=True):
        np.testing.assert_allclose(found, grad.numpy(), rtol=1e-3, atol=1e-4)


def functions(source: str) -> dict[str, str]:
    return {
        node.name: ast.unparse([*node.decorator_list, *node.body])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
    }


def test_the_chapter_shows_the_kernels_that_were_timed() -> None:
    cells = re.findall(r"```{code-cell}\n((?!:|---).*?)```", TEXT.read_text(), re.DOTALL)
    shown: dict[str, str] = {}
    for cell in cells:
        shown |= functions(cell)
    timed = functions(inspect.getsource(experiments))
    assert {name: shown.get(name) for name in timed} == timed
