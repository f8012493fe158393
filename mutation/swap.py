"""Puts a mutant into the running process by giving existing functions new code."""

import ast
import gc
import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from mutation.mutants import Mutant


class NotImportableError(Exception):
    """The mutated module can't be imported, so any test would notice."""


def install(mutant: Mutant, root: Path) -> None:
    """Change the module of `mutant` in this process, a fork that only runs this mutant.

    Raises:
        NotImportableError: if a statement in the module fails with the mutant.
    """
    module = sys.modules[".".join(mutant.place.path.relative_to(root).with_suffix("").parts)]
    mutant.change()
    ast.fix_missing_locations(mutant.place.tree)
    if mutant.is_default:
        _install_defaults(mutant, module)
    elif mutant.place.function is not None:
        _install_code(mutant, module)
    else:
        _install_statement(mutant, module)


def _install_code(mutant: Mutant, module: ModuleType) -> None:
    function = _function(module, mutant)
    path, original = str(mutant.place.path), function.__code__
    codes = {_name(code): code for code in _codes(compile(mutant.place.tree, path, "exec"))}
    if _name(original) not in codes:
        raise LookupError(f"there is no function {function.__qualname__} in the mutant of {path}")
    function.__code__ = codes[_name(original)]
    for inner in _made_by(original):
        # It's too late to change the captured variables of a closure that already exists.
        with suppress(ValueError):
            inner.__code__ = codes.get(_name(inner.__code__), inner.__code__)


def _name(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _made_by(outer: CodeType) -> list[FunctionType]:
    """The existing functions that were defined inside another one, for example by decorators."""
    inside = set(_codes(outer))
    if not inside:
        return []
    gc.unfreeze()  # frozen objects aren't in the list of objects
    try:
        living = [each for each in gc.get_objects() if type(each) is FunctionType]
    finally:
        gc.freeze()
    return [each for each in living if each.__code__ in inside]


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _install_defaults(mutant: Mutant, module: ModuleType) -> None:
    outer, definition = _function(module, mutant), mutant.statement
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    changed = _executed(definition, module)[definition.name]
    living = [outer]
    if definition is not mutant.place.function:
        made = _made_by(outer.__code__)
        living = [each for each in made if each.__code__.co_name == definition.name]
        _install_code(mutant, module)  # for functions that don't exist yet
    for each in living:
        each.__defaults__, each.__kwdefaults__ = changed.__defaults__, changed.__kwdefaults__


def _install_statement(mutant: Mutant, module: ModuleType) -> None:
    """Execute a statement again, and update the modules that imported its names."""
    owner: Any = module
    for name in mutant.place.scope:
        owner = vars(owner)[name]
    for name, value in _executed(mutant.statement, module).items():
        old = vars(owner)[name]
        setattr(owner, name, value)
        if owner is module:
            _hand_on(name, old, value)


def _hand_on(name: str, old: object, new: object) -> None:
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get(name, _hand_on) is old:
            setattr(module, name, new)


def _executed(statement: ast.stmt, module: ModuleType) -> dict[str, Any]:
    names: dict[str, Any] = {}
    code = compile(ast.Module([statement], []), str(module.__file__), "exec")
    try:
        exec(code, dict(vars(module)), names)
    except Exception as error:
        raise NotImportableError from error
    return names


def _function(module: ModuleType, mutant: Mutant) -> FunctionType:
    """Return the mutant's outermost function without its decorators."""
    assert mutant.place.function is not None
    names = list(mutant.place.scope)
    found: Any = module
    for name in names[: names.index(mutant.place.function.name) + 1]:
        found = vars(found)[name]
    if isinstance(found, property):
        found = found.fget
    found = inspect.unwrap(getattr(found, "__func__", found))
    assert isinstance(found, FunctionType)
    return found
