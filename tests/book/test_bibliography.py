"""Every work in the bibliography is cited, and all entries have the same format."""

import re

import pytest
from pybtex.database import Entry, parse_file

from tests.helpers.this_book import BOOK

WORKS = parse_file(str(BOOK.source / "references.bib")).entries

FIELDS = ["title", "journal", "booktitle", "publisher", "volume", "number", "pages", "year"]
FIELDS += ["eprint", "archiveprefix", "doi", "url"]  # no others, and in this order
VENUES = {"article": "journal", "inproceedings": "booktitle", "book": "publisher", "misc": None}
NO_ADDRESS = {"awais2021revisiting": "journal and pages are confirmed, the DOI is not"}
ARXIV = "https://arxiv.org/abs/"

each_work = pytest.mark.parametrize(("key", "work"), WORKS.items(), ids=list(WORKS))


def citations(text: str) -> set[str]:
    lists = re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", text)
    return {key.strip() for keys in lists for key in keys.split(",")}


def cited() -> set[str]:
    pages = [BOOK.source / f"{name}.md" for name in BOOK.pages]
    return set().union(*(citations(page.read_text(encoding="utf-8")) for page in pages))


def test_every_work_is_cited() -> None:
    assert sorted(WORKS.keys() - cited()) == []


def test_every_cited_work_is_there() -> None:
    assert sorted(cited() - WORKS.keys()) == []


def test_citations_are_found() -> None:
    text = "a {cite}`one` b {cite:t}`two`, {cite:p}`three, four`; {ref}`five` `six`"
    assert citations(text) == {"one", "two", "three", "four"}


def test_works_are_in_the_order_of_their_keys() -> None:
    assert list(WORKS) == sorted(WORKS)


@each_work
def test_an_entry_says_who_what_where_and_when(key: str, work: Entry) -> None:
    assert work.persons.get("author"), "an author, or the contributors"
    assert work.fields["title"]
    venue = VENUES[work.type]
    assert venue is None or work.fields[venue]
    assert re.fullmatch(r"[a-z]+\d{4}[a-z0-9]*", key)
    assert work.fields["year"] in key, "the key contains the year"
    if key in NO_ADDRESS:
        assert "doi" not in work.fields
        assert work.fields["pages"]
    else:
        assert {"doi", "url"} & set(work.fields), "a DOI or a URL"


@each_work
def test_an_entry_has_the_form_of_the_others(key: str, work: Entry) -> None:
    del key
    names = [name.lower() for name in work.fields]
    assert names == [name for name in FIELDS if name in names]
    assert not work.fields["title"].endswith(".")
    assert work.fields.get("url", "https://").startswith("https://")
    assert re.fullmatch(r"10\.\d{4,}/\S+", work.fields.get("doi", "10.1234/5"))
    assert re.fullmatch(r"\d+(--\d+)?", work.fields.get("pages", "1"))


@each_work
def test_a_preprint_has_its_number(key: str, work: Entry) -> None:
    del key
    address = work.fields.get("url", "")
    if work.type == "misc" and address.startswith(ARXIV):
        assert work.fields["eprint"] == address.removeprefix(ARXIV)
        assert work.fields["archiveprefix"] == "arXiv"
