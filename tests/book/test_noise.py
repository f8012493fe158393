"""Rounding noise: which results get it, how much they get, and which ones don't change."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bookbuild.reproduce.noise.last_bits import EXACT_BITS, UNSIGNED, change

TYPES = (np.float16, np.float32, np.float64)

# Each line is one expression on square matrices: x and y are from NumPy, a and b from torch.
SUMMED_OR_APPROXIMATED = """
x @ y.T
x @ b.numpy()
np.exp(x)
np.tanh(x)
np.matmul(x, y)
np.exp(x, out=np.empty_like(x))
np.sum(x, axis=0)
np.einsum("ij,kj->ik", x, y)
np.add(x, y).mean(axis=1)
x.sum(0)
x.var(axis=1, ddof=1)
x.std(1)
np.linalg.norm(x, axis=1)
np.linalg.svd(x)[1]
np.mean(x.astype(np.float32), axis=0)
reference.layer_norm(x, x.shape[-1])
a @ b.T
a.exp()
a.sum(0)
a.mean(0)
a.std(1)
a.float() @ b.float().T
(a * torch.arange(1.0, 101).reshape(-1, 1, 1)).bfloat16().mean(1)
torch.softmax(a, -1)
torch.tanh(a)
torch.nn.functional.layer_norm(a, a.shape[-1:])
torch.nn.functional.conv1d(a[None], b[:, :, None])
torch.nn.functional.scaled_dot_product_attention(a[None], b[None], b[None])
torch.addmm(a @ b.T, a, b.T)
torch.linalg.vector_norm(a, dim=1)
torch.exp(a, out=torch.empty_like(a))
a.clone().exp_()
a.clone().addcmul_(a, b)
a.T.exp().T
torch.stack(torch._foreach_norm(list(a)))
GRADIENT(a, b)
ADAM(a)
"""
EXACT = """
x + y
x * y
x / y
np.sqrt(np.abs(x))
x ** 2
x.T[::2]
np.sort(x)
np.where(x > 0, x, y)
np.arange(6.0).sum()
np.ones((3, 3)) @ np.ones((3, 3))
x.max()
a + b
a / b
a.square()
a.abs().sqrt()
a.relu()
torch.cat([a, b])
a.T.contiguous()
a[a > 0]
torch.arange(6.0).sum()
torch.ones(1000, dtype=torch.bfloat16).sum()
np.cumsum(x, axis=1)
(a > b).double().mean(0)
np.mean(x > y, axis=0)
(x > y).mean(0)
"""
# C code expects `np.exp` to be the original object, and would read invalid memory otherwise.
UFUNCS = """
sum(not isinstance(getattr(np, name), np.ufunc) for name in in_numpy.UFUNCS.split())
float(__import__("ml_dtypes").bfloat16(1))
"""
EQUAL = """
torch.softmax(a, -1)[:5]
torch.softmax(a[:5], -1)
"""
SCRIPT = """
import ast, json, sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import numpy as np, torch
from bookbuild.reproduce.noise import in_numpy, in_torch

def GRADIENT(a, b):
    leaf = a.clone().requires_grad_()
    torch.nn.functional.layer_norm(leaf, leaf.shape[-1:]).mul(b).sum().backward()
    return leaf.grad

def ADAM(a):
    leaf = torch.nn.Parameter(a.clone())
    leaf.grad = a * 3
    torch.optim.Adam([leaf]).step()
    return leaf.detach()

def results(seed):
    global reference
    transform = lambda tree: tree
    if seed is not None:
        transform = in_numpy.start(seed).visit
        in_torch.start(seed)
    from lnbook import reference
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 40, 40))
    names = {**globals(), "x": x, "y": y, "a": torch.tensor(x), "b": torch.tensor(y)}
    found = []
    for line in sys.argv[2].strip().splitlines():
        value = eval(compile(transform(ast.parse(line, mode="eval")), line, "eval"), names)
        if isinstance(value, torch.Tensor):
            value = value.double().numpy()
        found.append(np.ravel(value).astype(float).tolist())
    return found

def in_a_fork(seed):
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        return pool.submit(results, seed).result()

print(json.dumps([in_a_fork(seed) for seed in json.loads(sys.argv[1])]))
"""
SEEDS = (None, 0, 1)


def results(expressions: list[str]) -> dict[int | None, dict[str, np.ndarray]]:
    """The values of the expressions for each seed: noise can't be stopped, so each has a process.

    Only one process imports torch, and the others are its forks.
    """
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(SEEDS), "\n".join(expressions)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).resolve().parents[2],
    )
    assert done.returncode == 0, done.stderr
    return {
        seed: dict(zip(expressions, map(np.array, values), strict=True))
        for seed, values in zip(SEEDS, json.loads(done.stdout), strict=True)
    }


@pytest.fixture(scope="module")
def runs() -> dict[int | None, dict[str, np.ndarray]]:
    lines = [*SUMMED_OR_APPROXIMATED.splitlines(), *EXACT.splitlines()]
    lines += [*UFUNCS.splitlines(), *EQUAL.splitlines()]
    return results([*filter(None, lines)])


@pytest.mark.parametrize("expression", SUMMED_OR_APPROXIMATED.strip().splitlines())
def test_what_is_summed_or_approximated_gets_noise(runs: dict, expression: str) -> None:
    clean, first, second = (runs[seed][expression] for seed in (None, 0, 1))
    assert (first != clean).any()
    assert (second != first).any(), "a different seed gives different noise"
    kinds = {"float32": 2e-6, "float()": 2e-6, "bfloat16": 0.02}
    small = next((size for kind, size in kinds.items() if kind in expression), 1e-14)
    scale = np.abs(clean).max()
    assert np.abs(first - clean).max() <= small * scale


@pytest.mark.parametrize("expression", EXACT.strip().splitlines())
def test_what_is_exact_everywhere_gets_none(runs: dict, expression: str) -> None:
    np.testing.assert_array_equal(runs[0][expression], runs[None][expression])


def test_extensions_get_the_ufuncs_of_numpy_themselves(runs: dict) -> None:
    assert [runs[0][line].tolist() for line in UFUNCS.strip().splitlines()] == [[0], [1]]


def test_equal_computations_stay_equal(runs: dict) -> None:
    whole, part = (runs[0][line] for line in EQUAL.strip().splitlines())
    np.testing.assert_array_equal(whole, part)


@pytest.mark.parametrize("dtype", TYPES)
def test_half_of_the_numbers_move_by_one_unit_and_few_of_16_bits(dtype: type) -> None:
    numbers = np.random.default_rng(0).normal(size=100_000).astype(dtype)
    size = numbers.itemsize
    bits = numbers.view(UNSIGNED[size]).copy()
    change(bits, 3, EXACT_BITS[size])
    steps = bits.astype(np.int64) - numbers.view(UNSIGNED[size]).astype(np.int64)
    shares = {int(step): (steps == step).mean() for step in np.unique(steps)}
    assert set(shares) == {-1, 0, 1}
    low, high = (0.001, 0.004) if size == 2 else (0.2, 0.3)
    assert low < shares[-1] < high
    assert low < shares[1] < high


@pytest.mark.parametrize("dtype", TYPES)
def test_exact_and_special_numbers_stay(dtype: type) -> None:
    numbers = np.array([0.0, -0.0, 1.0, -3.0, 0.5, 6.25, np.inf, -np.inf, np.nan], dtype)
    bits = numbers.view(UNSIGNED[numbers.itemsize])
    for seed in range(20):
        changed = bits.copy()
        change(changed, seed, EXACT_BITS[numbers.itemsize])
        np.testing.assert_array_equal(changed, bits)
