"""The book as a whole: its pages, its references, and the messages you get when they disagree."""

import re
from pathlib import Path

import pytest
import yaml

from bookbuild.book import Book
from bookbuild.checks.check_html import LONGEST_DESCRIPTION, SHORTEST_DESCRIPTION
from bookbuild.errors import BookError
from tests.book.small_book import CHAPTER, SmallBook


def test_every_reference_belongs_to_a_chapter(book: Book) -> None:
    on_disk = set(book.references.rglob("*.ipynb"))
    assert on_disk == {book.reference(chapter) for chapter in book.notebooks}


def test_next_leads_through_the_chapters_first(book: Book) -> None:
    """ "Next" leads from the home page through all chapters, with no other page in between."""
    chapters = tuple(chapter.name for chapter in book.chapters)
    assert book.pages[: 1 + len(chapters)] == ("index", *chapters)


def test_every_page_has_a_description(book: Book) -> None:
    for name in book.pages:
        text = (book.source / f"{name}.md").read_text(encoding="utf-8")
        front = yaml.safe_load(text.split("---")[1]) if text.startswith("---") else {}
        description = front.get("myst", {}).get("html_meta", {}).get("description", "")
        assert SHORTEST_DESCRIPTION <= len(description) <= LONGEST_DESCRIPTION, (
            f"{name}: the description has {len(description)} characters"
        )


def test_every_chapter_has_two_exercises_or_more(book: Book) -> None:
    start = re.compile(r"^[`:]{3,}\{exercise(-start)?\}", re.MULTILINE)
    counts = {one.shown: len(start.findall(one.path.read_text())) for one in book.chapters}
    assert not {name: count for name, count in counts.items() if count < 2}


def test_panels_have_numbers_since_wide_screens_show_them_side_by_side(book: Book) -> None:
    place = r"(?i:top|middle|bottom|upper|lower)"
    found = [
        f"{chapter.shown}:{number}: {word.group()}"
        for chapter in book.chapters
        for number, line in enumerate(chapter.path.read_text().splitlines(), start=1)
        if not re.match(r" +alt:", line)  # describes the whole figure, whose panels are stacked
        for word in re.finditer(
            rf"\b(?:Top|Middle|Bottom):|\((?:top|bottom)\b|\b{place} panels?\b", line
        )
    ]
    assert not found


def test_code_fits_the_page(book: Book) -> None:
    folded = {"remove-cell", "remove-input", "hide-input"}
    wrong = []
    for chapter in book.chapters:
        for number, cell in enumerate(chapter.code_cells):
            if folded & set(cell.metadata.get("tags", [])):
                continue
            lines = cell.source.splitlines()
            wrong += [f"{chapter.where(number)}: {line}" for line in lines if len(line) > 76]
            if len(lines) > 15:
                wrong.append(f"{chapter.where(number)}: {len(lines)} lines")
    assert not wrong, "at most 15 lines of 76 characters:\n" + "\n".join(wrong)


def problems(book: Book) -> list[str]:
    with pytest.raises(BookError) as caught:
        _ = book.chapters
    return list(caught.value.problems)


def test_contents_and_pages_are_compared_both_ways(small: SmallBook) -> None:
    assert [chapter.name for chapter in small.book.chapters] == ["part/chapter"]
    small.book.toc.write_text(small.book.toc.read_text() + "  - file: part/gone\n")
    (small.book.source / "part" / "extra.md").write_text("# Extra\n")
    assert sorted(problems(small.fresh())) == [
        "_toc.yml: 'part/gone' is listed, but book/part/gone.md does not exist",
        "book/part/extra.md: not listed in _toc.yml",
    ]


def test_malformed_contents(small: SmallBook) -> None:
    small.book.toc.write_text("format: jb-book\n")
    assert problems(small.fresh())[0].startswith("_toc.yml: ")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("name: python3", "name: fortran", "asks for the kernel 'fortran'; installed: "),
        ("kernelspec: {", "kernel: {", "no 'kernelspec' in its front matter"),
        ("format_name: myst", "format_name: md", "no 'jupytext' with 'format_name: myst'"),
        ("kernelspec: {", "kernelspec: {{", "book/part/chapter.md: Notebook metadata: "),
        ("```{code-cell}\nprint", "```{code-cell}\n:tags: [a\nprint", "book/part/chapter.md: "),
    ],
)
def test_malformed_chapter(small: SmallBook, old: str, new: str, expected: str) -> None:
    assert old in CHAPTER
    small.chapter.write_text(CHAPTER.replace(old, new))
    found = problems(small.fresh())
    assert len(found) == 1
    assert expected in found[0]
    assert found[0].startswith("book/part/chapter.md: ")
    assert "\n" not in found[0]


def test_a_command_tells_a_problem_in_one_line(small: SmallBook) -> None:
    (small.book.source / "part" / "extra.md").write_text("# Extra\n")
    done = small.run("book")
    assert done.returncode == 1
    assert done.stderr == "error: book/part/extra.md: not listed in _toc.yml\n"


def test_paths_are_shown_from_the_root(book: Book) -> None:
    assert book.show(book.source / "index.md") == "book/index.md"
    assert isinstance(book.references, Path)
