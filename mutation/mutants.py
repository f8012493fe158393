"""Finds the mutants of a module: every place that a mutator can change."""

import ast
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutation.mutators import TAKE_A_NAME, changed, changed_statement, negated, other_text

Scope = tuple[str, ...]


@dataclass(frozen=True)
class Place:
    """Where a statement is: its file, and the functions and classes around it."""

    path: Path
    tree: ast.Module
    scope: Scope = ()
    function: ast.FunctionDef | None = None  # the outermost

    @property
    def name(self) -> str:
        """The dotted name of the innermost function or class; empty at the top level."""
        return ".".join(self.scope)

    def inside(self, node: ast.FunctionDef | ast.ClassDef) -> "Place":
        """Return the place of the statements inside `node`."""
        function = self.function or (node if isinstance(node, ast.FunctionDef) else None)
        return Place(self.path, self.tree, (*self.scope, node.name), function)


@dataclass(frozen=True)
class Mutant:
    """One change to one module, described by its text before and after.

    Attributes:
        place: where the changed statement is.
        statement: the statement, or the function whose default is changed.
        first: the first of the lines that a test must reach to see the change.
        last: the last of these lines.
        before: the source text before the change.
        after: the source text after it.
        number: distinguishes changes with the same texts in the same function, counted from 1.
        change: makes the change in the module's syntax tree.
    """

    place: Place
    statement: ast.stmt
    first: int
    last: int
    before: str
    after: str
    change: Callable[[], None] = field(compare=False, repr=False)
    number: int = 1

    @property
    def is_default(self) -> bool:
        """Whether the change is to a function's default argument."""
        return isinstance(self.statement, ast.FunctionDef)


def mutants(path: Path) -> list[Mutant]:
    """Return every mutant of the module at `path`, in source order."""
    tree = ast.parse(path.read_text())
    seen: dict[tuple[str, str, str], int] = {}
    found = []
    for mutant in _in_body(tree.body, Place(path, tree)):
        key = (mutant.place.name, mutant.before, mutant.after)
        seen[key] = seen.get(key, 0) + 1
        found.append(Mutant(**{**vars(mutant), "number": seen[key]}))
    return found


def _in_body(body: list[ast.stmt], place: Place) -> Iterator[Mutant]:
    for position, statement in enumerate(body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            if isinstance(statement, ast.FunctionDef):
                yield from _in_defaults(statement, place.inside(statement))
            yield from _in_body(statement.body, place.inside(statement))
        elif not _says_nothing(statement):
            yield from _in_statement(body, position, place)


def _says_nothing(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring, an import, a type alias or `__all__`."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.AnnAssign):
        return ast.unparse(statement.annotation) == "TypeAlias" or statement.value is None
    if isinstance(statement, ast.Assign):
        named = ast.unparse(statement.targets[0])
        return named == "__all__" or (named[0].isupper() and not named.isupper())
    return isinstance(statement, (ast.Import, ast.ImportFrom, ast.Pass))


def _in_statement(body: list[ast.stmt], position: int, place: Place) -> Iterator[Mutant]:
    statement = body[position]
    nested = [value for _, value in ast.iter_fields(statement) if _is_body(value)]
    last = nested[0][0].lineno - 1 if nested else statement.end_lineno
    lines = statement.lineno, max(statement.lineno, last or 0)
    text = _header(statement)
    if place.function is not None:
        for new in changed_statement(statement, place.function):
            after = "pass" if isinstance(new, ast.If) else "return None"
            change = _Change(body, position, new)
            yield Mutant(place, statement, *lines, text, after, change)
    if not isinstance(statement, ast.Raise) and not _warns(statement):
        for change in _changes(statement):
            with change:
                after = _header(statement)
            yield Mutant(place, statement, *lines, text, after, change)
    for inner in nested:
        yield from _in_body(inner, place)
    for handler in getattr(statement, "handlers", []):
        yield from _in_body(handler.body, place)


def _in_defaults(function: ast.FunctionDef, place: Place) -> Iterator[Mutant]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    pairs: list[tuple[list[ast.arg], Any]] = [
        (positional[len(positional) - len(arguments.defaults) :], arguments.defaults),
        (arguments.kwonlyargs, arguments.kw_defaults),
    ]
    lines = function.body[0].lineno, function.end_lineno or 0
    for names, defaults in pairs:
        for position, (name, old) in enumerate(zip(names, defaults, strict=True)):
            for new in [] if old is None else [*changed(old), *other_text(old)]:
                before, after = (f"{name.arg}={ast.unparse(value)}" for value in (old, new))
                change = _Change(defaults, position, new)
                yield Mutant(place, function, *lines, before, after, change)


class _Change:
    """Replaces a node: permanently when called, temporarily in a `with`.

    The owner is a list of nodes or a node's `vars`; the key is an index or a name.
    """

    def __init__(self, owner: Any, key: Any, new: ast.AST) -> None:
        self.owner, self.key, self.new = owner, key, new
        self.old = owner[key]

    def __call__(self) -> None:
        self.owner[self.key] = self.new

    def __enter__(self) -> None:
        self()

    def __exit__(self, *_: object) -> None:
        self.owner[self.key] = self.old


def _changes(node: ast.AST) -> Iterator[_Change]:
    """Yield the changes to expressions in `node`, but not to those in nested statements."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "handlers") or _is_body(value):
            continue
        owner: Any = value if isinstance(value, list) else vars(node)
        for key in range(len(value)) if isinstance(value, list) else [name]:
            child = owner[key]
            if not isinstance(child, ast.AST) or isinstance(child, ast.JoinedStr):
                continue
            for new in [*changed(child), *_by_role(node, name, child)]:
                yield _Change(owner, key, new)
            yield from _changes(child)


def _by_role(node: ast.AST, name: str, child: ast.AST) -> Iterable[ast.AST]:
    """Return the changes that depend on the role of `child` in `node`."""
    if name in ("test", "ifs") and isinstance(child, ast.expr):
        return negated(child)
    selects = isinstance(node, (ast.Compare, ast.Subscript)) or name == "keys"
    if isinstance(node, ast.Call) and name == "args":
        selects = ast.unparse(node.func).split(".")[-1] in TAKE_A_NAME
    return other_text(child) if selects else ()


def _is_body(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], ast.stmt)


def _warns(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("warnings.warn(")


def _header(statement: ast.stmt) -> str:
    """Return a statement's text; for a compound statement, its first line."""
    text = ast.unparse(ast.fix_missing_locations(statement))
    return text.split("\n")[0] if hasattr(statement, "body") else text
