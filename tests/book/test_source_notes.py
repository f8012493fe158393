"""Every section of the source notes has a place in the course, and that place exists.

The build checks that a linked chapter has the linked section, and fails otherwise.
"""

import re

import pytest

from bookbuild.book import Book

# How many sections each note has.
SECTIONS = {"000": 20, "001": 8, "002": 13, "003": 7, "004": 7}


def rows(book: Book) -> dict[str, list[tuple[str, str]]]:
    """The rows in each note's table: the section, and where it's taught."""
    text = (book.source / "source-notes.md").read_text(encoding="utf-8")
    found = {}
    for part in re.split(r"^## Note ", text, flags=re.MULTILINE)[1:]:
        cells = re.findall(r"^\* - (.*)\n  - (.*)$", part, re.MULTILINE)
        found[part[:3]] = cells[1:]  # without the table's header
    return found


@pytest.mark.parametrize("note", SECTIONS)
def test_every_section_has_a_row_with_a_link(book: Book, note: str) -> None:
    listed = rows(book)[note]
    assert len({title for title, _ in listed}) == len(listed) == SECTIONS[note]
    for title, place in listed:
        targets = re.findall(r"\]\(([\w/-]+)\.md(?:#[\w-]+)?\)", place)
        assert targets, title
        assert all((book.source / f"{target}.md").is_file() for target in targets), title


def test_every_note_has_its_table(book: Book) -> None:
    assert rows(book).keys() == SECTIONS.keys()


# The verdicts used on the myths page.
VERDICTS = ("false", "half", "slip", "open")


def entries(book: Book) -> dict[str, tuple[str, str]]:
    """Each entry's heading slug and text on the myths page, keyed by anchor."""
    text = (book.source / "practice/myths.md").read_text(encoding="utf-8")
    parts = re.split(r"^\((myth-[\w-]+)\)=\n### (.*)\n", text, flags=re.MULTILINE)[1:]
    found = {}
    for anchor, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        address = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        found[anchor] = address, re.split(r"^## ", body, flags=re.MULTILINE)[0]
    return found


def listed(book: Book) -> dict[str, set[str]]:
    """The verdicts that the page's list of statements gives for each entry, keyed by anchor."""
    text = (book.source / "practice/myths.md").read_text(encoding="utf-8")
    found: dict[str, set[str]] = {}
    for verdicts, anchor in re.findall(
        r"^  - ([\w, ]+)\n  - \[[^]]+\]\((myth-[\w-]+)\)", text, re.M
    ):
        found.setdefault(anchor, set()).update(verdicts.split(", "))
    return found


def test_the_list_has_the_verdicts_of_the_entries(book: Book) -> None:
    judged = {}
    for anchor, (_, body) in entries(book).items():
        words = re.findall(r"\*\*(\w+)[.*]", body)
        judged[anchor] = {word.lower() for word in words} & set(VERDICTS)
    assert judged == listed(book)


def test_a_quoted_note_links_to_the_entry_that_judges_it(book: Book) -> None:
    missing = [
        f"note {note} is quoted in {address}, but none of its rows leads there"
        for address, body in entries(book).values()
        for note in sorted(set(re.findall(r"^>.*?\((00\d), ", body, re.MULTILINE)))
        if not any(f"(practice/myths.md#{address})" in place for _, place in rows(book)[note])
    ]
    assert not missing, "\n".join(missing)


def test_both_lists_of_verdicts_use_the_same_words(book: Book) -> None:
    text = (book.source / "practice/when-to-use.md").read_text(encoding="utf-8")
    table = text.split(":name: when-lists", 1)[1].split("```", 1)[0]
    verdicts = re.findall(r"^\* - .*\n  - (.*)\n", table, re.MULTILINE)[1:]
    assert len(verdicts) > 10
    assert set(verdicts) <= set(VERDICTS) | {"true"}
