"""Adds noise to what NumPy sums and approximates.

Functions of `numpy` are replaced by ones that change their results. Methods of arrays such as
`x.mean()` call functions of the module `_methods`, which are replaced as well. Two things can't be
reached like this: the operator `@`, and functions such as `np.exp`, which extensions written in C
take for the objects that they are. In the cells of a notebook and in the modules of `lnbook` they
become calls of the functions with noise.
"""

from __future__ import annotations

import ast
import builtins
import functools
import operator
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from numpy._core import _methods

from bookbuild.reproduce.noise.last_bits import EXACT_BITS, UNSIGNED, are_exact, change

# Not cumsum and cumprod: they write down every step, so that only one order is possible.
SUMS = """
average convolve corrcoef correlate cov dot einsum inner interp mean median
nanmean nansum percentile polyfit prod quantile std sum tensordot trace var vdot
"""
UFUNCS = """
arccos arcsin arctan arctan2 cbrt cos cosh exp exp2 expm1 float_power hypot log log10 log1p log2
logaddexp matmul power sin sinh tan tanh
"""
LINEAR_ALGEBRA = """
cholesky det eig eigh eigvals eigvalsh inv lstsq matrix_power norm pinv qr slogdet solve svd
"""
EXACT_OF_EXACT = ("sum", "_sum", "mean", "_mean")  # numbers so short that no order rounds
METHODS = ("_sum", "_prod", "_mean", "_var", "_std")
FLOATS = (np.float16, np.float32, np.float64)
IMPORTED_AS = "np"  # in lnbook and in every chapter
NOISY_CALLS = "__noisy_calls__"
OPERATOR = "at"


def start(seed: int) -> ast.NodeTransformer:
    """Let NumPy compute with noise from now on, in this process.

    Returns:
        What the syntax tree of a cell has to go through.
    """

    def noisy(value: Any) -> Any:
        return with_noise(value, seed)

    for name in SUMS.split():
        setattr(np, name, NoisyFunction(getattr(np, name), noisy))
    for name in LINEAR_ALGEBRA.split():
        setattr(np.linalg, name, NoisyFunction(getattr(np.linalg, name), noisy))
    for name in METHODS:
        setattr(_methods, name, NoisyFunction(getattr(_methods, name), noisy))
    calls = {name: NoisyFunction(getattr(np, name), noisy) for name in UFUNCS.split()}
    calls[OPERATOR] = NoisyFunction(operator.matmul, noisy)  # of tensors, too
    setattr(builtins, NOISY_CALLS, SimpleNamespace(**calls))
    sys.meta_path.insert(0, LnbookFinder())
    return NoisyCalls()


def with_noise(value: Any, seed: int) -> Any:
    """A copy of an array or of a NumPy number with noise; of a tuple, of each of its members."""
    if isinstance(value, np.ndarray) and value.dtype in FLOATS:
        size = value.dtype.itemsize
        copy = np.array(value, order="C", subok=True)
        change(np.asarray(copy).reshape(-1).view(UNSIGNED[size]), seed, EXACT_BITS[size])
        return copy
    if isinstance(value, np.floating):
        return with_noise(np.asarray(value), seed)[()]
    if isinstance(value, tuple):
        members = [with_noise(member, seed) for member in value]
        return type(value)(*members) if hasattr(value, "_fields") else tuple(members)
    return value


class NoisyFunction:
    """A function of NumPy with noise in its result, and with all attributes of the function."""

    def __init__(self, function: Callable[..., Any], noisy: Callable[[Any], Any]) -> None:
        self._function, self._noisy = function, noisy
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and change its result or the array that it was written to."""
        result = self._function(*args, **kwargs)
        if self.__name__ in EXACT_OF_EXACT and args and _are_exact(args[0]):
            return result
        out = kwargs.get("out")
        if out is None:
            return self._noisy(result)
        target = out[0] if isinstance(out, tuple) else out
        target[...] = self._noisy(target)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)


def _are_exact(value: Any) -> bool:
    """Whether the sum of an array is exact, in any order."""
    array = np.asarray(value)
    if array.dtype not in FLOATS:
        return True  # truths and whole numbers
    size = array.dtype.itemsize
    return are_exact(np.ravel(array).view(UNSIGNED[size]), EXACT_BITS[size])


class NoisyCalls(ast.NodeTransformer):
    """Calls the functions with noise for `left @ right` and for `np.exp` and its kind."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace one operator, and those in its operands."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        call = ast.Call(_noisy(OPERATOR), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace one function that is called `np.` and the name of a ufunc."""
        self.generic_visit(node)
        of_numpy = isinstance(node.value, ast.Name) and node.value.id == IMPORTED_AS
        if not of_numpy or node.attr not in UFUNCS.split():
            return node
        return ast.fix_missing_locations(ast.copy_location(_noisy(node.attr), node))


def _noisy(name: str) -> ast.Attribute:
    """The expression that gives a function with noise."""
    return ast.Attribute(ast.Name(NOISY_CALLS, ast.Load()), name, ast.Load())


class LnbookFinder:
    """Finds the modules of lnbook, and loads them with calls of functions with noise."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Like Python's own finder, with a different loader."""
        if name.partition(".")[0] != "lnbook":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = LnbookLoader(spec.loader.name, spec.loader.path)
        return spec


class LnbookLoader(SourceFileLoader):
    """Compiles a module from its source, never from a cache, which knows nothing of the calls."""

    def get_code(self, fullname: str) -> CodeType:
        """The code of a module."""
        path = self.get_filename(fullname)
        tree = NoisyCalls().visit(ast.parse(self.get_data(path), path))
        code: CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code
