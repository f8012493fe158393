"""A chapter goes by one name everywhere: in its code, tests and measurements."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookbuild.book import Book

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = ROOT / "lnbook" / "chapters"
KINDS = {"exercises", "experiments", "figures"}
TREES = {
    "code": CHAPTERS,
    "tests": ROOT / "tests" / "chapters",
    "measurements": ROOT / "lnbook" / "measurements",
    "scripts that measure": ROOT / "benchmarks",
}


def names(book: Book) -> set[str]:
    """The chapters' folder names: `what-is-normalized` becomes `what_is_normalized`."""
    return {chapter.name.replace("-", "_") for chapter in book.chapters}


def folders(tree: Path) -> set[str]:
    """The folders two levels down, where the chapters are."""
    found = (path for path in tree.glob("[a-z]*/[a-z]*") if path.is_dir())
    return {path.relative_to(tree).as_posix() for path in found}


@pytest.mark.parametrize("tree", TREES)
def test_every_folder_is_named_after_a_chapter(tree: str, book: Book) -> None:
    assert folders(TREES[tree]) <= names(book), f"a folder in {tree} isn't named after a chapter"


def test_every_chapter_has_code_and_tests(book: Book) -> None:
    assert folders(TREES["code"]) == folders(TREES["tests"]) == names(book)


def test_code_of_a_chapter_has_one_of_three_names() -> None:
    for path in CHAPTERS.glob("*/*/[a-z]*.py"):
        assert path.stem in KINDS, path


def test_exercises_and_experiments_have_their_tests() -> None:
    """Figures need no test file: examples, snapshots and a shared test file cover them."""
    for path in CHAPTERS.glob("*/*/[a-z]*.py"):
        tests = TREES["tests"] / path.parent.relative_to(CHAPTERS) / f"test_{path.name}"
        assert path.stem == "figures" or tests.is_file(), f"{path}: there is no {tests}"


def public_names(path: Path) -> list[str]:
    """What a module lists in `__all__`."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise ValueError(f"{path}: has no __all__")


def test_every_checker_of_an_exercise_has_a_test() -> None:
    untested = []
    for path in CHAPTERS.glob("*/*/exercises.py"):
        tests = TREES["tests"] / path.parent.relative_to(CHAPTERS) / "test_exercises.py"
        named = set(re.findall(r"\w+", tests.read_text()))
        checkers = {name for name in public_names(path) if name.startswith("check")}
        untested += [f"{path}: {name}" for name in sorted(checkers - named)]
    assert not untested, "\n".join(untested)


def test_every_measurement_has_its_script() -> None:
    recorded, scripts = (
        {path.relative_to(tree).with_suffix("") for path in tree.glob(f"*/*/[a-z]*.{ending}")}
        for tree, ending in ((TREES["measurements"], "json"), (TREES["scripts that measure"], "py"))
    )
    assert recorded <= scripts
    # A script that needs a special machine may not have a record yet.
    for name in scripts - recorded:
        source = (TREES["scripts that measure"] / f"{name}.py").read_text()
        assert re.search("(?m)^missing = |^def missing\\(", source), name


def imported(source: str) -> Iterator[str]:
    """The folders of the chapters whose code a source file imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            if match := re.match(r"lnbook\.chapters\.(?!shared)(\w+)\.(\w+)", name):
                yield "/".join(match.groups())


def test_no_chapter_uses_the_code_of_another(book: Book) -> None:
    for chapter in book.chapters:
        own = chapter.name.replace("-", "_")
        cells = "\n".join(cell.source for cell in chapter.code_cells)
        lines = re.findall(r"^from lnbook.* import .*$", cells, re.MULTILINE)
        sources = {chapter.name: "\n".join(line.split("(")[0] for line in lines if "(" not in line)}
        sources |= {str(p): p.read_text() for p in (CHAPTERS / own).glob("*.py")}
        for name, source in sources.items():
            others = set(imported(source)) - {own}
            assert not others, f"{name}: put what it shares with {others} into chapters/shared"


def test_what_chapters_share_uses_no_chapter() -> None:
    for path in CHAPTERS.glob("shared/*.py"):
        assert not set(imported(path.read_text())), path
