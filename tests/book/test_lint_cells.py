"""Ruff checks chapters' code cells, and its findings have the right line numbers."""

import pytest

from bookbuild.checks.lint_cells import lint, problems_of
from bookbuild.errors import BookError
from tests.book.small_book import CHAPTER, SmallBook

UNDEFINED = """
```{code-cell}
---
tags: [hide-input]
mystnb:
  image:
    alt: "Nothing."
---
%precision 3

print(
    values)
```
"""


def findings(small: SmallBook) -> list[str]:
    (chapter,) = small.fresh().chapters
    return list(problems_of(small.book, chapter))


def test_a_clean_chapter(small: SmallBook, capsys: pytest.CaptureFixture[str]) -> None:
    lint(small.book)
    assert capsys.readouterr().out == "The code cells of 1 chapter(s) are clean\n"


def test_a_name_that_no_cell_defines(small: SmallBook) -> None:
    small.chapter.write_text(CHAPTER + UNDEFINED)
    line = small.chapter.read_text().splitlines().index("    values)") + 1
    expected = f"book/part/chapter.md:{line}: F821 Undefined name `values`"
    assert findings(small) == [expected]
    with pytest.raises(BookError, match=r"F821 Undefined name `values`"):
        lint(small.fresh())


def test_cells_share_their_names(small: SmallBook) -> None:
    small.chapter.write_text(CHAPTER.replace('print("it is", value)', 'print("it is")'))
    assert findings(small) == []  # `value` is shown by the first cell
    small.chapter.write_text(CHAPTER.replace("value\n```", "```", 1).replace("value)", "1)"))
    assert findings(small) == []
    small.chapter.write_text(CHAPTER.replace("from lnbook", "import os\nfrom lnbook"))
    assert [problem.split(": ")[1] for problem in findings(small)] == [
        "F401 `os` imported but unused"
    ]


def test_a_cell_that_is_no_python(small: SmallBook) -> None:
    small.chapter.write_text(CHAPTER.replace("value\n```", "value = = 1\n```", 1))
    assert findings(small)[0].startswith("book/part/chapter.md:")
