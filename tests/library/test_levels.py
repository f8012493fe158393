"""lnbook's levels: a module imports only from its own level and the ones below it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "lnbook"
LEVELS = (
    {"_build", "_check", "_check_tensors"},
    {"reference", "measurements"},
    {"functional", "kernels"},
    {"layers"},
    {"recurrent", "transformer"},
    {"data", "debugging", "training"},
    {"notebook"},
    {"chapters"},
    {"labs"},
)
LEVEL = {name: number for number, names in enumerate(LEVELS) for name in names}
MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem != "__init__"
)


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported(source: str) -> Iterator[str]:
    """For everything that a source file imports from lnbook, the first name below `lnbook`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in names if name.startswith("lnbook."))


def test_the_imports_of_a_source_are_found() -> None:
    source = (
        "import lnbook.layers.dyt\nfrom lnbook import data\nfrom lnbook.a.b import c\nimport os"
    )
    assert list(imported(source)) == ["layers", "data", "a"]


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_module_imports_from_a_higher_level(path: Path) -> None:
    own = LEVEL[part(path)]
    higher = {name for name in imported(path.read_text()) if LEVEL[name] > own}
    assert not higher, f"{path.name} is below {higher}"


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: "-".join(sorted(level)))
def test_no_level_has_circular_imports(level: set[str]) -> None:
    needs = {
        name: {
            other
            for path in MODULES
            if part(path) == name
            for other in imported(path.read_text())
            if other in level and other != name
        }
        for name in level
    }
    while needs:
        free = {name for name, others in needs.items() if not others & needs.keys()}
        assert free, f"a cycle: {needs}"
        needs = {name: others for name, others in needs.items() if name not in free}
