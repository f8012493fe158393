"""Chapters link the terms of the glossary where they first use them."""

import re
from pathlib import Path

import pytest

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from tests.book.terms import Use, glossary, unlinked, uses

BOOK = Book(Path(__file__).resolve().parents[2])
TERMS = glossary(BOOK)

# The build checks a link to one of these, but no chapter has to have one.
NOT_DEMANDED = {
    "gain": "is also a verb",
    "key": "is also what a dictionary is asked by",
    "layer": "is what the course is about: no chapter can be understood without it",
    "length": "is also that of a sequence or of an axis, as everybody uses the word",
    "mean": "is also a verb",
    "rank": "is also a verb, and a place in an order",
    "reference": "is also a work that is referred to",
}
LONGEST = 60  # words of a definition


def text_of(chapter: Chapter) -> str:
    return chapter.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", BOOK.chapters, ids=lambda chapter: chapter.name)
def test_terms_are_linked_at_their_first_use(chapter: Chapter) -> None:
    missing = [
        f"{chapter.shown}:{use.line}: the first '{use.term}' is no link to the glossary"
        for use in unlinked(BOOK, text_of(chapter), TERMS)
        if use.term not in NOT_DEMANDED
    ]
    assert not missing, "\n".join(missing)


def test_every_term_is_linked_from_a_chapter() -> None:
    linked = {
        use.term
        for chapter in BOOK.chapters
        for use in uses(BOOK, text_of(chapter), TERMS)
        if use.linked
    }
    assert sorted(linked - TERMS.keys()) == []
    assert sorted(TERMS.keys() - linked) == []


def test_only_terms_are_not_demanded() -> None:
    assert NOT_DEMANDED.keys() <= TERMS.keys()


def test_the_glossary_is_in_the_order_of_the_alphabet() -> None:
    assert list(TERMS) == sorted(TERMS, key=str.casefold)


@pytest.mark.parametrize("term", TERMS)
def test_a_definition_is_short(term: str) -> None:
    definition = re.sub(r"\{term\}`([^`<]*)[^`]*`", r"\1", TERMS[term])
    assert definition.endswith((".", ".)")), "a definition ends with a full stop"
    assert len(definition.split()) <= LONGEST


# What counts as a use, and what as a link


def found(text: str, *terms: str) -> list[tuple[str, int, bool]]:
    return [tuple(use) for use in uses(BOOK, text, terms)]


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("A batch.", "batch"),
        ("Batches.", "batch"),
        ("A *batch*, **batch**.", "batch"),
        ("- a batch", "batch"),
        ("The Fisher matrices", "Fisher matrix"),
        ("a finite\ndifference", "finite differences"),
        ("two accuracies", "accuracy"),
        ("```{hint}\n:class: dropdown\na batch\n```", "batch"),
        ("> quoted\n\na batch", "batch"),
        ("| a | b |\n|---|---|\n| c | d |\n\na batch", "batch"),
    ],
)
def test_running_prose_uses_a_term(text: str, term: str) -> None:
    assert {(use.term, use.linked) for use in uses(BOOK, text, [term])} == {(term, False)}


@pytest.mark.parametrize(
    "text",
    [
        "# A batch",
        "> a batch",
        "> # quoted\n>\n> a batch",
        "| batch | b |\n|---|---|\n| batch | d |",
        "```{list-table}\n* - batch\n```",
        "`batch` $batch$ {cite}`batch` {ref}`batch`",
        "$$\nbatch\n$$",
        "[batch](batch.md) ![batch](batch.svg) <!-- batch -->",
        "```{code-cell}\nbatch\n```",
        "```\nbatch\n```",
        "---\nbatch: 1\n---\n",
        "```{exercise-start} A batch\n:label: batch\n```",
        "batched mini-batch batch-wise Batch_size",
    ],
)
def test_other_text_does_not_use_a_term(text: str) -> None:
    assert found(text, "batch") == []


def test_the_longest_term_counts() -> None:
    terms = ["batch", "batch normalization", "normalization"]
    assert found("batch normalization of a batch", *terms) == [
        ("batch normalization", 1, False),
        ("batch", 1, False),
    ]


def test_a_name_keeps_its_capitals() -> None:
    assert found("adam, an Adam, and two LSTMs", "Adam", "LSTM") == [
        ("Adam", 1, False),
        ("LSTM", 1, False),
    ]


@pytest.mark.parametrize(
    "link",
    [
        "{term}`batch`",
        "{term}`Batches <batch>`",
        "**{term}`Batch`**",
        "| {term}`batch` | b |\n|---|---|",
        "```{list-table}\n* - {term}`batch`\n```",
    ],
)
def test_a_link_counts_wherever_it_stands(link: str) -> None:
    assert found(link, "batch") == [("batch", 1 + link.startswith("```"), True)]
    assert unlinked(BOOK, f"{link}\n\na batch", ["batch"]) == []


def test_a_link_after_the_first_use_comes_too_late() -> None:
    text = "---\ntitle: a\n---\n\n```{tip}\n:class: x\n\nOne batch\nand a {term}`batch`.\n```\n"
    assert unlinked(BOOK, text, ["batch"]) == [Use("batch", 8, linked=False)]


def test_a_link_to_what_is_no_term_is_found() -> None:
    assert found("{term}`batches`", "batch") == [("batches", 1, True)]
