"""The API reference shows every public name in lnbook."""

import ast
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from sphinx.util.inspect import stringify_signature

from bookbuild.sphinx import api
from lnbook import reference
from tests.helpers.this_book import BOOK

PACKAGE = Path(__file__).resolve().parents[2] / "lnbook"


def has_names(path: Path) -> bool:
    tree = ast.parse(path.read_text())
    targets = [node.targets[0] for node in tree.body if isinstance(node, ast.Assign)]
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def public_modules() -> list[str]:
    """Packages and modules with public names; if a package has any, its modules are left out."""
    found = []
    for path in sorted(PACKAGE.rglob("[a-z]*.py")) + sorted(PACKAGE.rglob("__init__.py")):
        package = path.with_name("__init__.py")
        hidden = path != package and has_names(package)
        if has_names(path) and not hidden:
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            found.append(".".join(parts[:-1] if path == package else parts))
    return sorted(set(found))


@pytest.fixture(scope="module")
def shown() -> set[str]:
    """The modules named on the reference's pages, including those that match a pattern."""
    text = "\n".join(path.read_text() for path in sorted((BOOK.source / "api").glob("*.md")))
    modules = set(re.findall(r"^\.\. automodule:: (\S+)$", text, re.MULTILINE))
    env = SimpleNamespace(srcdir=BOOK.source)
    for pattern in re.findall(r"^\.\. api-modules:: (\S+)$", text, re.MULTILINE):
        modules |= set(api._modules(env, pattern))
    return modules


@pytest.mark.parametrize("module", public_modules())
def test_the_reference_shows_every_public_module(module: str, shown: set[str]) -> None:
    assert module in shown, "list it on a page in book/api"


def test_public_modules_are_found() -> None:
    found = public_modules()
    assert {"lnbook.layers", "lnbook.notebook", "lnbook.data.text"} <= set(found)
    assert "lnbook.layers.layer_norm" not in found


def public_objects() -> Iterator[tuple[str, object]]:
    """The functions and classes (but not the constants) that the modules list as public."""
    for name in public_modules():
        module = importlib.import_module(name)
        for public in module.__all__:
            value = getattr(module, public)
            if inspect.isroutine(value) or inspect.isclass(value):
                yield f"{name}.{public}", value


@pytest.mark.parametrize(
    "value", [pytest.param(value, id=name) for name, value in public_objects()]
)
def test_every_public_name_has_an_example(value: object) -> None:
    assert ">>>" in (value.__doc__ or ""), "add an example to its docstring"


def test_public_objects_are_found() -> None:
    found = dict(public_objects())
    assert {"lnbook.layers.LayerNorm", "lnbook.chapters.shared.figures.stages"} <= found.keys()
    assert "lnbook.chapters.practice.speed.experiments.LSTM_STEPS" not in found


def test_the_examples_are_run(pytestconfig: pytest.Config) -> None:
    assert "lnbook" in pytestconfig.getini("testpaths")
    assert pytestconfig.getoption("doctestmodules")


def test_a_page_is_read_again_only_when_its_package_has_other_modules(tmp_path: Path) -> None:
    package = tmp_path / "lnbook" / "data"
    package.mkdir(parents=True)
    for name in ("__init__", "_hidden", "text", "digits"):
        (package / f"{name}.py").touch()
    listed = {api.LISTED: {"lnbook.data.*": ["lnbook.data.digits", "lnbook.data.text"]}}
    env = SimpleNamespace(
        srcdir=tmp_path / "book",
        metadata={"api/data": listed, "api/layers": {}},
    )

    def outdated() -> list[str]:
        return api._outdated(None, env, set(), set(), set())

    assert outdated() == []
    (package / "adding.py").touch()
    assert outdated() == ["api/data"]


def test_a_signature_has_the_names_of_array_types() -> None:
    def signature(function: Callable[..., object]) -> str | None:
        whole = stringify_signature(inspect.signature(function), unqualified_typehints=True)
        given, arrow, returned = whole.partition(" -> ")
        return arrow.join(filter(None, api._short(None, "", "", None, None, given, returned)))

    def some(x: ArrayLike | None, found: dict[str, NDArray[np.int64]]) -> None:
        """Do nothing."""

    assert signature(reference.layer_norm) == (
        "(x: ArrayLike, normalized_shape: int | ~collections.abc.Sequence[int], "
        "weight: ArrayLike | None = None, bias: ArrayLike | None = None, eps: float = 1e-05) "
        "-> NDArray[~numpy.float64]"
    )
    assert signature(some) == (
        "(x: ArrayLike | None, found: dict[str, NDArray[~numpy.int64]]) -> None"
    )
    assert api._short(None, "", "", None, None, None, None) == (None, None)
