"""What makes the notebook comparison strict: nbval alone would miss much of this."""

from collections.abc import Iterator
from functools import cache

import pytest
from nbformat import NotebookNode

from bookbuild.chapter import Chapter, code_cells
from bookbuild.checks.check_outputs import output_problems
from bookbuild.outputs.cache import read_notebook, stale_reason, with_text_of
from lnbook._build import FIGURE_SNAPSHOT
from tests.helpers.this_book import BOOK

RENEW = "run 'make notebooks', read the differences and commit them"

pytestmark = pytest.mark.parametrize("chapter", BOOK.notebooks, ids=lambda chapter: chapter.name)


stored = cache(read_notebook)  # eight tests read these files, each up to a megabyte


@pytest.fixture
def reference(chapter: Chapter) -> NotebookNode:
    path = BOOK.reference(chapter)
    notebook = stored(path)
    if notebook is None:
        pytest.fail(f"{chapter.shown} has no reference {BOOK.show(path)}: {RENEW}")
    return notebook


def outputs(notebook: NotebookNode) -> Iterator[tuple[int, NotebookNode]]:
    for number, cell in enumerate(code_cells(notebook)):
        for output in cell.outputs:
            yield number, output


def test_every_cell_was_executed_in_order(chapter: Chapter, reference: NotebookNode) -> None:
    counts = [cell.execution_count for cell in code_cells(reference)]
    assert counts == list(range(1, len(counts) + 1)), (
        f"{chapter.shown}: execution counts are {counts}; nbval compares nothing in a cell "
        f"without one: {RENEW}"
    )


def test_outputs_follow_from_the_sources(chapter: Chapter, reference: NotebookNode) -> None:
    reason = stale_reason(BOOK, chapter, reference)
    assert reason is None, f"{chapter.shown}: {reason}: {RENEW}"


def test_text_is_that_of_the_chapter(chapter: Chapter, reference: NotebookNode) -> None:
    assert reference == with_text_of(chapter, reference), (
        f"{chapter.shown}: the reference's text isn't the chapter's: {RENEW}"
    )


def test_no_cell_is_left_out_of_the_comparison(chapter: Chapter, reference: NotebookNode) -> None:
    for number, cell in enumerate(code_cells(reference)):
        tags = {tag.lower() for tag in cell.metadata.get("tags", [])}
        comments = [line for line in cell.source.splitlines() if "NBVAL_" in line.upper()]
        assert not comments, f"{chapter.where(number)} has {comments}"
        assert not {tag for tag in tags if tag.startswith("nbval")}, chapter.where(number)


def test_every_drawing_has_a_record(chapter: Chapter, reference: NotebookNode) -> None:
    for number, output in outputs(reference):
        data = output.get("data", {})
        assert "image/svg+xml" not in data or FIGURE_SNAPSHOT in data, (
            f"{chapter.where(number)} shows a drawing without a record to compare: "
            "show a matplotlib.figure.Figure, and lnbook.notebook.set_up adds the record"
        )


def test_no_output_holds_what_none_should(chapter: Chapter, reference: NotebookNode) -> None:
    assert output_problems(chapter, reference) == []


def test_no_output_is_an_error(chapter: Chapter, reference: NotebookNode) -> None:
    for number, output in outputs(reference):
        allowed = "raises-exception" in code_cells(reference)[number].metadata.get("tags", [])
        assert output.output_type != "error" or allowed, chapter.where(number)


def test_every_figure_says_what_is_to_be_seen(chapter: Chapter, reference: NotebookNode) -> None:
    for number, cell in enumerate(code_cells(reference)):
        if any("image/svg+xml" in output.get("data", {}) for output in cell.outputs):
            image = cell.metadata.get("mystnb", {}).get("image", {})
            assert len(image.get("alt", "").split()) >= 8, (
                f"{chapter.where(number)} shows a figure: describe it under mystnb, image, alt"
            )
