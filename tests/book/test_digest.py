"""Outputs must become invalid when anything they depend on changes, and only then."""

import subprocess
import sys

import pytest

from bookbuild.book import Book
from bookbuild.outputs.digest import code_only, modules, source_digest
from tests.book.small_book import CHAPTER, SmallBook


def digest_of(small: SmallBook) -> str:
    book = small.fresh()
    return source_digest(book, book.chapters[0])


@pytest.mark.parametrize(
    ("file", "old", "new", "counts"),
    [
        ("book/part/chapter.md", "2 * constants", "3 * constants", True),
        ("book/part/chapter.md", 'print("it is"', 'print("that is"', True),
        ("lnbook/constants.py", "HALF = 21", "HALF = 22", True),
        ("lnbook/constants.py", "HALF = 21", 'HALF = 21\nTEXT = """a\n\nb"""', True),
        ("constraints.txt", "\nnumpy==", "\nnumpy==9.", True),
        ("constraints.txt", "\ntorch==", "\ntorch==9.", True),
        ("book/part/chapter.md", "The value.", "This is the value.", False),
        ("lnbook/unrelated.py", "OTHER = 1", "OTHER = 2", False),
        ("lnbook/constants.py", "HALF = 21", "# Half of it.\n\nHALF = 21  # half", False),
        ("lnbook/constants.py", "HALF = 21", '"""A\n\ndocstring."""\nHALF = 21', False),
        ("constraints.txt", "\nSphinx==", "\nSphinx==9.", False),
        ("book/index.md", "A small book", "The small book", False),
    ],
)
def test_what_outputs_follow_from(
    small: SmallBook, file: str, old: str, new: str, counts: bool
) -> None:
    before = digest_of(small)
    path = small.book.root / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert (digest_of(small) != before) == counts


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Doc."""\n\nX = 1  # one\n', "X = 1"),
        (
            'class A:\n    """Doc.\n\n    More.\n    """\n\n    x = "# no"\n',
            'class A:\n    x = "# no"',
        ),
        ('X = """a\n\n# b\n"""\n', 'X = """a\n\n# b\n"""'),
        ("def f():\n    # Why.\n    return 1\n", "def f():\n    return 1"),
        ('X = 1\n"not a docstring"\n', 'X = 1\n"not a docstring"'),
    ],
)
def test_docstrings_and_comments_are_left_out(source: str, expected: str) -> None:
    assert code_only(source) == expected


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("book/part/chapter.md", 'print("it is"', 'NAME = "part/numbers"\nprint("it is"'),
        ("lnbook/constants.py", "HALF = 21", 'HALF = 21\nNAME = "part/numbers"'),
    ],
)
def test_data_counts_where_it_is_named(small: SmallBook, file: str, old: str, new: str) -> None:
    data = small.book.package / "measurements" / "part" / "numbers.json"
    data.parent.mkdir(parents=True)
    path = small.book.root / file
    unnamed = digest_of(small)
    data.write_text("[1]")
    assert digest_of(small) == unnamed
    path.write_text(path.read_text().replace(old, new))
    named = digest_of(small)
    data.write_text("[2]")
    assert len({unnamed, named, digest_of(small)}) == 3


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("from lnbook import constants", {"lnbook", "lnbook.constants"}),
        ("from lnbook.constants import HALF", {"lnbook", "lnbook.constants"}),
        ("import lnbook.constants as c", {"lnbook", "lnbook.constants"}),
        ("from lnbook import middle", {"lnbook", "lnbook.middle", "lnbook.constants"}),
        (
            "from lnbook.deep.leaf import x",
            {"lnbook", "lnbook.deep", "lnbook.deep.leaf", "lnbook.unrelated"},
        ),
        ("from lnbook import deep", {"lnbook", "lnbook.deep"}),
        ("%matplotlib inline\nimport lnbook.constants", {"lnbook", "lnbook.constants"}),
        ("if True:\n    from lnbook import constants", {"lnbook", "lnbook.constants"}),
        ("import numpy", set()),
    ],
)
def test_modules_that_a_chapter_reaches(
    small: SmallBook, statement: str, expected: set[str]
) -> None:
    package = small.book.package
    (package / "middle.py").write_text("from .constants import HALF\n")
    (package / "deep").mkdir()
    (package / "deep" / "__init__.py").write_text("")
    (package / "deep" / "leaf.py").write_text("from ..unrelated import OTHER as x\n")
    small.chapter.write_text(CHAPTER.replace("from lnbook import constants", statement))
    book = small.fresh()
    assert set(modules(book, book.chapters[0])) == expected


@pytest.mark.parametrize("statement", ["import lnbook", "from lnbook import *"])
def test_a_bare_import_reaches_everything(small: SmallBook, statement: str) -> None:
    small.chapter.write_text(CHAPTER.replace("from lnbook import constants", statement))
    book = small.fresh()
    assert "lnbook.unrelated" in modules(book, book.chapters[0])


def test_modules_found_by_reading_are_those_that_python_loads(book: Book) -> None:
    """Run a chapter's imports for real: the digest must not miss any lnbook module."""
    chapter = next(c for c in book.chapters if c.name == "formula/step-by-step")
    imports = [
        line
        for cell in chapter.code_cells
        for line in cell.source.splitlines()
        if line.startswith(("import lnbook", "from lnbook"))
    ]
    code = "\n".join([*imports, "import sys", "print(*(m for m in sys.modules if 'lnbook' in m))"])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=book.root
    )
    loaded = {name for name in done.stdout.split() if name.split(".")[0] == "lnbook"}
    assert loaded <= set(modules(book, chapter))
