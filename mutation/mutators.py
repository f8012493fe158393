"""The mutators, which change expressions and statements, one change at a time."""

import ast
from collections.abc import Iterator
from functools import singledispatch
from typing import Any, cast

OPERATORS: dict[type[ast.AST], Any] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}

NAMES = {
    "sum": "mean",
    "mean": "sum",
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "zeros": "ones",
    "ones": "zeros",
    "zeros_": "ones_",
    "ones_": "zeros_",
    "mul_": "add_",
    "add_": "mul_",
}

# Calls whose first argument is an attribute name.
TAKE_A_NAME = {
    "get",
    "get_parameter",
    "getattr",
    "hasattr",
    "register_buffer",
    "register_parameter",
}

DROPPED = (ast.Expr, ast.Assign, ast.AugAssign, ast.Raise, ast.Continue)


@singledispatch
def changed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield each replacement for the expression `node`."""
    yield from ()


@changed.register
def _(node: ast.BinOp) -> Iterator[ast.AST]:
    if swapped := OPERATORS.get(type(node.op)):
        yield ast.BinOp(node.left, swapped(), node.right)


@changed.register
def _(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(OPERATORS[type(node.op)](), node.values)


@changed.register
def _(node: ast.Compare) -> Iterator[ast.AST]:
    for position, operator in enumerate(node.ops):
        ops = [*node.ops]
        ops[position] = OPERATORS[type(operator)]()
        yield ast.Compare(node.left, ops, node.comparators)


@changed.register
def _(node: ast.UnaryOp) -> Iterator[ast.AST]:
    if not isinstance(node.operand, ast.Constant):  # otherwise changing the constant does the same
        yield node.operand


@changed.register
def _(node: ast.Constant) -> Iterator[ast.AST]:
    value = node.value
    if isinstance(value, bool):
        yield ast.Constant(not value)
    elif isinstance(value, int):
        yield from (ast.Constant(value + 1), ast.Constant(value - 1))
    elif isinstance(value, float):
        yield ast.Constant(1.0 if value == 0.0 else 2.0 if value == 0.5 else 2.0 * value)
        if value == 2.0:
            yield ast.Constant(0.5)


@changed.register
def _(node: ast.Call) -> Iterator[ast.AST]:
    function = node.func
    name = getattr(function, "attr", getattr(function, "id", ""))
    if name in NAMES:
        yield ast.Call(_renamed(function, NAMES[name]), node.args, node.keywords)
    if isinstance(function, ast.Attribute) and not node.args and not node.keywords:
        yield function.value  # x.contiguous() becomes x


def _renamed(function: ast.expr, name: str) -> ast.expr:
    if isinstance(function, ast.Attribute):
        return ast.Attribute(function.value, name, ast.Load())
    return ast.Name(name, ast.Load())


def negated(test: ast.expr) -> Iterator[ast.AST]:
    """Yield the negation of a condition, unless changing its operator does the same."""
    same = isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        same = isinstance(test.ops[0], (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn))
    if not same:
        yield ast.UnaryOp(ast.Not(), test)


def other_text(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a different string, for strings that control behavior."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield ast.Constant(f"{node.value}?")


def changed_statement(statement: ast.stmt, function: ast.FunctionDef) -> Iterator[ast.stmt]:
    """Yield replacements for a whole statement in `function`: nothing, or `return None`.

    The old statement is kept as dead code, so that local names and `super` stay bound.
    """
    if isinstance(statement, DROPPED) and not _is_first_value(statement, function):
        yield ast.If(ast.Constant(False), [statement], [])
    if isinstance(statement, ast.Return) and not _is_none(statement.value):
        value = cast(ast.expr, statement.value)
        yield ast.Return(ast.IfExp(ast.Constant(True), ast.Constant(None), value))


def _is_first_value(statement: ast.stmt, function: ast.FunctionDef) -> bool:
    """Whether a statement is the first to define a name; Python itself would fail without it."""
    if not isinstance(statement, ast.Assign):
        return False
    names = {node.id for target in statement.targets for node in _names(target)}
    known = {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
    known |= {node.id for node in _names(function) if node.lineno < statement.lineno}
    return bool(names - known)


def _names(node: ast.AST) -> Iterator[ast.Name]:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            yield inner


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)
