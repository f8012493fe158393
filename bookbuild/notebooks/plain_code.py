"""Removes the code that only the site needs: cells that paste numbers into the text.

A cell tagged `remove-cell` computes the numbers that the text quotes and pastes them with `glue`
from MyST-NB. A notebook already has the numbers in its text, so it keeps only the parts of such
a cell that later cells use.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import sys
from collections.abc import Iterable, Sequence

from bookbuild.chapter import python_of

GLUE = "glue"
SITE_ONLY = "myst_nb"
GENERATOR = "rng"  # code that draws from it must stay, or all later random numbers change


def without_glue(sources: Sequence[tuple[str, bool]]) -> list[str]:
    """The source of each code cell with pasting removed; empty if the cell isn't needed.

    Args:
        sources: each cell's source, and whether the site hides the cell.
    """
    trees = [ast.parse(python_of(source)) for source, _ in sources]
    pasting = {GLUE} | {
        node.name
        for tree in trees
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and GLUE in _reads(ast.unparse(node))
    }
    needed: set[str] = set()
    results: list[str] = []
    for (source, hidden), tree in reversed(list(zip(sources, trees, strict=True))):
        if not hidden:
            needed |= _reads(python_of(source))
            results.append(source)
            continue
        kept: list[str] = []
        for statement in reversed(tree.body):
            before = ast.dump(statement)
            left = _Strip(pasting).visit(statement)
            if left is None or not _is_needed(left, needed):
                continue
            needed |= _reads(ast.unparse(left))
            unchanged = ast.dump(left) == before
            text = ast.get_source_segment(source, statement) if unchanged else None
            kept.append(text or ast.unparse(left))
        results.append("\n".join(reversed(kept)))
    return list(reversed(results))


def imported(sources: Iterable[str]) -> set[str]:
    """The packages that the sources import, except for the standard library."""
    names: set[str] = set()
    for source in sources:
        for node in ast.walk(ast.parse(python_of(source))):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names.add(node.module.partition(".")[0])
    return names - set(sys.stdlib_module_names)


def undefined(sources: Iterable[str]) -> list[str]:
    """The names that cells use but no earlier cell defines."""
    cells = [python_of(source) for source in sources]
    known = set(dir(builtins)) | {"__name__"}
    ever = known.union(*map(_binds, cells))
    found: dict[str, None] = {}
    for cell in cells:
        known |= _binds(cell)
        # A function may use names from a later cell, since it's called after that cell.
        unknown = (_reads(cell, functions=False) - known) | (_reads(cell) - ever)
        found |= dict.fromkeys(sorted(unknown))
    return list(found)


def _reads(source: str, *, functions: bool = True) -> set[str]:
    """The global names that a source reads, at the top level or in a function."""

    def below(table: symtable.SymbolTable) -> set[str]:
        names = {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (table.get_type() == "module" or symbol.is_global())
        }
        return names.union(*map(below, table.get_children())) if functions else names

    return below(symtable.symtable(source, "cell", "exec"))


def _binds(source: str) -> set[str]:
    """The global names that a source assigns."""
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}


def _is_needed(statement: ast.stmt, needed: set[str]) -> bool:
    if isinstance(statement, ast.Assert):
        return False
    text = ast.unparse(statement)
    if isinstance(statement, ast.Expr) or GENERATOR in _reads(text):
        return True
    # `a.b = 1` and `a[0] = 1` change a.
    changed = {
        name
        for node in ast.walk(statement)
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
        for name in _reads(ast.unparse(node.value))
    }
    return bool((_binds(text) | changed) & needed)


class _Strip(ast.NodeTransformer):
    """Removes `glue` calls, imports that only the site needs, and statements left with no body."""

    def __init__(self, pasting: set[str]) -> None:
        self._pasting = pasting

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        call = node.value
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            return None if call.func.id in self._pasting else node
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        return None if node.module == SITE_ONLY else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST | None:
        return None if node.name in self._pasting else node

    def generic_visit(self, node: ast.AST) -> ast.AST | None:  # type: ignore[override]
        super().generic_visit(node)
        if isinstance(node, ast.For | ast.While | ast.If | ast.With) and not node.body:
            return None
        return node
