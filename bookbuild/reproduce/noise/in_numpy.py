"""Adds noise to NumPy's sums and approximations.

This module replaces functions in `numpy` with versions that change their results. Array methods
such as `x.mean()` call functions in the `_methods` module, which are replaced too. That doesn't
work for the `@` operator or for ufuncs such as `np.exp`, which C extensions expect to be the
original objects. Notebook cells and `lnbook`'s modules are rewritten to call noisy functions
instead.
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

# Not cumsum and cumprod: they return every step, so only one order is possible.
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
EXACT_OF_EXACT = ("sum", "_sum", "mean", "_mean")  # exact if the numbers have few bits
METHODS = ("_sum", "_prod", "_mean", "_var", "_std")
FLOATS = (np.float16, np.float32, np.float64)
IMPORTED_AS = "np"  # NumPy's name in lnbook and in every chapter
NOISY_CALLS = "__noisy_calls__"
OPERATOR = "at"


def start(seed: int) -> ast.NodeTransformer:
    """Make NumPy compute with noise from now on in this process.

    Returns:
        The transformer to apply to each cell's syntax tree.
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
    calls[OPERATOR] = NoisyFunction(operator.matmul, noisy)  # works on tensors, too
    setattr(builtins, NOISY_CALLS, SimpleNamespace(**calls))
    sys.meta_path.insert(0, LnbookFinder())
    return NoisyCalls()


def with_noise(value: Any, seed: int) -> Any:
    """A noisy copy of an array or NumPy scalar, or of each member of a tuple."""
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
    """A NumPy function that adds noise to its result and has all of the original's attributes."""

    def __init__(self, function: Callable[..., Any], noisy: Callable[[Any], Any]) -> None:
        self._function, self._noisy = function, noisy
        functools.update_wrapper(self, function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, and add noise to its result or its `out` array."""
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
    """Whether an array's sum is exact in any order."""
    array = np.asarray(value)
    if array.dtype not in FLOATS:
        return True  # booleans and integers
    size = array.dtype.itemsize
    return are_exact(np.ravel(array).view(UNSIGNED[size]), EXACT_BITS[size])


class NoisyCalls(ast.NodeTransformer):
    """Replaces `left @ right`, and ufuncs such as `np.exp`, with calls to noisy functions."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Replace an operator, and any others in its operands."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        call = ast.Call(_noisy(OPERATOR), [node.left, node.right], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace a ufunc that is accessed as an attribute of `np`."""
        self.generic_visit(node)
        of_numpy = isinstance(node.value, ast.Name) and node.value.id == IMPORTED_AS
        if not of_numpy or node.attr not in UFUNCS.split():
            return node
        return ast.fix_missing_locations(ast.copy_location(_noisy(node.attr), node))


def _noisy(name: str) -> ast.Attribute:
    """The expression for a noisy function."""
    return ast.Attribute(ast.Name(NOISY_CALLS, ast.Load()), name, ast.Load())


class LnbookFinder:
    """Finds lnbook's modules, and loads them with calls to noisy functions."""

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
    """Compiles a module from its source, never from cached bytecode, which has no noisy calls."""

    def get_code(self, fullname: str) -> CodeType:
        """The module's code."""
        path = self.get_filename(fullname)
        tree = NoisyCalls().visit(ast.parse(self.get_data(path), path))
        code: CodeType = compile(tree, path, "exec", dont_inherit=True)
        return code
