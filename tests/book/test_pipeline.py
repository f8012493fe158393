"""From chapter to reference to site: what gets executed when, and what is kept if a step fails."""

import json
import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from bookbuild.chapter import code_cells
from bookbuild.errors import BookError
from bookbuild.outputs.cache import find, read_notebook
from bookbuild.outputs.execute import execute
from tests.book.small_book import CHAPTER, INDEX, SmallBook

MakeBook = Callable[[], SmallBook]


def page(small: SmallBook) -> str:
    return (small.book.html / "part" / "chapter.html").read_text(encoding="utf-8")


def change_reference(small: SmallBook, change: Callable[[dict[str, Any]], None]) -> None:
    notebook = json.loads(small.reference.read_text())
    change(notebook)
    small.reference.write_text(json.dumps(notebook))


def code(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def read_pages(told: str) -> set[str]:
    return set(re.findall(r"reading sources\.\.\. \[ *\d+%\] (\S+)", told))


DRAWING = """
```{code-cell}
:tags: [hide-input]
:mystnb: {image: {alt: "A line that rises from left to right."}, figure: {caption: "A line."}}

from IPython.display import SVG

print("drawn", file=open("../../runs.txt", "a"))
SVG("<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'><path d='M0 40L40 0'/></svg>")
```
"""


def test_from_notebooks_to_site(built: MakeBook) -> None:
    small = built()
    small.chapter.write_text(CHAPTER + DRAWING)
    assert small.run("notebooks").returncode == 0
    assert find(small.book, small.fresh().chapters[0]) is not None

    done = small.run("book", "--verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_pages(done.stdout) == {"index", "part/chapter"}
    assert "Executing" not in done.stdout, "a build from valid references executes nothing"
    assert "it is 42" in page(small)
    assert "Outputs computed with lnbook" in page(small)

    # the download menu offers the chapter with its outputs
    assert 'href="../_sources/part/chapter.ipynb"' in page(small)
    offered = read_notebook(small.book.html / "_sources" / "part" / "chapter.ipynb")
    assert offered is not None
    assert code_cells(offered)[1].outputs[0].text == "it is 42\n"

    # lnbook changes: the old output must not be published, even though no page has changed
    (small.book.package / "constants.py").write_text("HALF = 50\n")
    done = small.run("book", "--verbose")
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_pages(done.stdout) == {"part/chapter"}
    assert "Executing 1 chapter(s)" in done.stdout
    assert "it is 100" in page(small)
    assert "it is 42" not in page(small)

    # what was executed for the site isn't executed again, even if the site is built from scratch
    assert small.run("book").stdout.startswith("Nothing has changed since the last build")
    shutil.rmtree(small.book.html)
    done = small.run("book")
    assert "Executing" not in done.stdout
    assert "it is 100" in page(small)

    # prose changes, and so does what a cell says of its figure: nothing is executed
    changed = {
        "The value.": "This is it.",
        "rises from left": "climbs from left",
        "A line.": "One line.",
        "hide-input": "wide",
    }
    for old, new in changed.items():
        assert old in page(small)
        small.chapter.write_text(small.chapter.read_text().replace(old, new))
    done = small.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Executing" not in done.stdout
    for old, new in changed.items():
        assert new in page(small)
        assert old not in page(small)
    runs = (small.book.root / "runs.txt").read_text()
    assert runs == "drawn\n" * 2, "MyST-NB has executed the chapter, too"


def test_renewing_shows_what_changed(built: MakeBook) -> None:
    small = built()
    assert "0 of 1 reference(s) updated" in small.run("notebooks").stdout

    small.chapter.write_text(CHAPTER.replace("The value.", "This is it."))
    done = small.run("notebooks")
    assert "Executing" not in done.stdout
    assert "every output is the same" in done.stdout
    assert "This is it." in small.reference.read_text()

    (small.book.package / "constants.py").write_text("HALF = 50\n")
    done = small.run("notebooks")
    assert "    -it is 42" in done.stdout
    assert "    +it is 100" in done.stdout
    assert "it is 100" in small.reference.read_text()


def test_renewing_on_request(built: MakeBook) -> None:
    small = built()
    assert "Executing 1 chapter(s)" in small.run("notebooks", "part/chapter").stdout
    assert "Executing 1 chapter(s)" in small.run("notebooks", "--all").stdout
    done = small.run("notebooks", "part/unknown")
    assert done.returncode == 1
    assert done.stderr == "error: no chapter named part/unknown; choose from part/chapter\n"


LAST = 'print("it is", value)'


# What a pyplot figure becomes once `set_up` has been called.
PYPLOT = """\
from IPython.display import display

display({"application/vnd.lnbook.figure+json": {}, "image/png": "AAAA"}, raw=True)"""


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("raise ValueError('first\\nsecond')", "raised ValueError: first"),
        ("import sys; print('careful', file=sys.stderr)", "wrote to stderr: careful"),
        ("import os; os._exit(1)", "lost its kernel"),
        ("print('it is', [0.0, -0.0])", "shows -0.0, which looks like rounding noise: "),
        ("3.084e-17", "shows 3.084e-17, which looks like rounding noise: "),
        (PYPLOT, "shows a figure that isn't an SVG: draw it in the chapter's figures.py "),
        ("def broken(:", "raised SyntaxError: "),
    ],
)
def test_what_stops_a_chapter_is_told_with_its_line(
    small: SmallBook, monkeypatch: pytest.MonkeyPatch, statement: str, expected: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(small.book.root))  # the small book's own lnbook
    small.chapter.write_text(CHAPTER.replace(LAST, statement))
    line = small.chapter.read_text().splitlines().index("```{code-cell}", 15) + 2
    book = small.fresh()
    with pytest.raises(BookError) as caught:
        execute(book, book.chapters[0])
    (told,) = caught.value.problems
    assert told.startswith(f"book/part/chapter.md:{line}: code cell 1 {expected}")
    assert "\n" not in told


@pytest.mark.parametrize("command", ["notebooks", "book"])
def test_a_failing_chapter_leaves_everything_as_it_was(built: MakeBook, command: str) -> None:
    small = built()
    before = small.reference.read_text()
    small.chapter.write_text(CHAPTER.replace(LAST, "1 / 0"))
    done = small.run(command)
    assert done.returncode == 1
    told = [row for row in done.stderr.splitlines() if row.startswith("error: ")]
    assert len(told) == 1
    assert "code cell 1 raised ZeroDivisionError: division by zero" in told[0]
    assert "Traceback" not in done.stderr
    assert small.reference.read_text() == before
    assert not (small.book.html / "part" / "chapter.html").exists()


def test_one_failing_chapter_keeps_the_references_of_all(built: MakeBook) -> None:
    small = built()
    small.book.toc.write_text(small.book.toc.read_text() + "  - file: part/second\n")
    (small.book.source / "part" / "second.md").write_text(CHAPTER.replace(LAST, "1 / 0"))
    before = small.reference.read_text()
    (small.book.package / "constants.py").write_text("HALF = 50\n")
    assert small.run("notebooks").returncode == 1
    assert small.reference.read_text() == before
    assert not small.reference.with_name("second.ipynb").exists()


def set_count(notebook: dict[str, Any]) -> None:
    code(notebook)[1]["execution_count"] = None


def set_number(notebook: dict[str, Any]) -> None:
    code(notebook)[1]["outputs"][0]["text"] = "it is 43\n"


def remove_output(notebook: dict[str, Any]) -> None:
    code(notebook)[1]["outputs"] = []


def set_source(notebook: dict[str, Any]) -> None:
    code(notebook)[1]["source"] = "print('it is 43')"


@pytest.mark.parametrize("change", [set_count, set_number, remove_output, set_source])
def test_a_reference_changed_by_hand_feeds_no_page(
    built: MakeBook, change: Callable[[dict[str, Any]], None]
) -> None:
    small = built()
    change_reference(small, change)
    assert find(small.book, small.book.chapters[0]) is None
    if change is set_number:
        assert "Executing 1 chapter(s)" in small.run("book").stdout
        assert "it is 42" in page(small)


def test_references_that_cannot_be_used_are_renewed_or_removed(built: MakeBook) -> None:
    small = built()
    orphan = small.reference.with_name("orphan.ipynb")
    orphan.write_text(small.reference.read_text())
    small.reference.write_text("{")
    assert find(small.book, small.book.chapters[0]) is None
    done = small.run("notebooks")
    assert done.returncode == 0
    assert "orphan.ipynb: removed" in done.stdout
    assert not orphan.exists()
    renewed = read_notebook(small.reference)
    assert renewed is not None
    assert renewed.metadata.lnbook.torch


BREAKAGES = {
    "a cross reference": ("(part/chapter.md)", "(part/missing.md)", "part/missing"),
    "an anchor": ("(part/chapter.md)", "(part/chapter.md#nowhere)", "nowhere"),
    "an equation label": ("{eq}`sum`", "{eq}`product`", "product"),
    "a formula": ("s = a + b", r"s = \frac{a}{", "invalid formula"),
    "a formula in a line": ("A {term}", r"$\unknowncommand$ A {term}", "invalid formula"),
    "a glossary term": ("{term}`row`", "{term}`column`", "column"),
    "a citation": ("A {term}", "{cite}`nobody1900` A {term}", "nobody1900"),
    "a figure number": ("A {term}", "{numref}`nothing` A {term}", "nothing"),
    "a pasted number": ("A {term}", "{glue:text}`nothing` A {term}", "nothing"),
    "a role": ("{term}`row`", "{trem}`row`", "trem"),
    "a directive": ("```{glossary}", "```{glosary}", "glosary"),
}


def test_every_breakage_turns_the_build_red(built: MakeBook) -> None:
    """Build a page for each kind of breakage; each one must be reported, with its file."""
    small = built()
    contents = small.book.toc.read_text()
    for number, (old, new, _) in enumerate(BREAKAGES.values()):
        assert old in INDEX
        text = INDEX.replace("sum", f"sum{number}").replace("\nrow\n", f"\nrow {number}\n")
        old = old.replace("sum", f"sum{number}")
        (small.book.source / f"broken{number}.md").write_text(text.replace(old, new))
        contents += f"  - file: broken{number}\n"
    small.book.toc.write_text(contents)
    for _ in range(2):  # a second build repeats the first one's warnings
        done = small.run("book")
        assert done.returncode == 1
        told = done.stdout + done.stderr
        for number, (what, (_, _, expected)) in enumerate(BREAKAGES.items()):
            lines = [line for line in told.splitlines() if f"broken{number}.md" in line]
            assert any(expected in line for line in lines), f"{what}: {lines}"
        assert "index.md" not in told
