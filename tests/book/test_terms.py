"""Chapters link glossary terms where they first use them."""

import re

import pytest

from bookbuild.chapter import Chapter
from tests.book.terms import Use, glossary, unlinked, uses
from tests.helpers.this_book import BOOK

TERMS = glossary(BOOK)

# The build checks links to these, but no chapter has to link to them.
NOT_DEMANDED = {
    "gain": "is also a verb",
    "key": "also means the key of a dictionary",
    "layer": "is what the course is about: no chapter can be understood without it",
    "length": "also means the length of a sequence or an axis, in the everyday sense",
    "mean": "is also a verb",
    "rank": "is also a verb, and a position in an order",
    "reference": "also means a cited work",
}
LONGEST = 60  # words in a definition


def text_of(chapter: Chapter) -> str:
    return chapter.path.read_text(encoding="utf-8")


@pytest.mark.parametrize("chapter", BOOK.chapters, ids=lambda chapter: chapter.name)
def test_terms_are_linked_at_their_first_use(chapter: Chapter) -> None:
    missing = [
        f"{chapter.shown}:{use.line}: the first '{use.term}' isn't linked to the glossary"
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
    assert definition.endswith((".", ".)")), "a definition ends with a period"
    assert len(definition.split()) <= LONGEST


# What counts as a use, and what counts as a link

ADMONITION = "---\ntitle: a\n---\n\n```{tip}\n:class: x\n\nOne batch\nand a {term}`batch`.\n```\n"
NO_PROSE = [
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
]
LINKS = ["{term}`batch`", "{term}`Batches <batch>`", "**{term}`Batch`**"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *((text, []) for text in NO_PROSE),
        *((link, [("batch", 1, True)]) for link in LINKS),
        ("A *batch*, **Batches**.", [("batch", 1, False)] * 2),
        ("- a batch", [("batch", 1, False)]),
        ("Fisher matrices, a finite\ndifference, two accuracies", [
            ("Fisher matrix", 1, False), ("finite differences", 1, False), ("accuracy", 2, False),
        ]),
        ("> quoted\n\na batch", [("batch", 3, False)]),
        ("| a | b |\n|---|---|\n| c | d |\n\na batch", [("batch", 5, False)]),
        ("batch normalization", [("batch normalization", 1, False)]),
        ("adam, an Adam, and two LSTMs", [("Adam", 1, False), ("LSTM", 1, False)]),
        ("| {term}`batch` | b |\n|---|---|", [("batch", 1, True)]),
        ("```{list-table}\n* - {term}`batch`\n```", [("batch", 2, True)]),
        ("{term}`batches`", [("batches", 1, True)]),  # the link leads nowhere
        (ADMONITION, [("batch", 8, False), ("batch", 9, True)]),
    ],
)  # fmt: skip
def test_what_uses_a_term(text: str, found: list[tuple[str, int, bool]]) -> None:
    terms = ["batch", "batch normalization", "Fisher matrix", "finite differences", "accuracy"]
    assert list(uses(BOOK, text, [*terms, "normalization", "Adam", "LSTM"])) == found


def test_a_link_has_to_stand_at_the_first_use() -> None:
    assert unlinked(BOOK, "{term}`batch`\n\na batch", ["batch"]) == []
    assert unlinked(BOOK, ADMONITION, ["batch"]) == [Use("batch", 8, linked=False)]
