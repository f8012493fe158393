"""The teacher's page: the times in its plans add up."""

import re

from bookbuild.book import Book

PLAN = re.compile(r"^\| minutes \|.*\n\|.*\n((?:\|.*\n)+)", re.MULTILINE)


def test_the_minutes_of_each_plan_add_up(book: Book) -> None:
    text = (book.source / "teach.md").read_text(encoding="utf-8")
    sums = []
    for plan in PLAN.finditer(text):
        rows = plan[1].splitlines()
        sums.append(sum(int(row.split("|")[1]) for row in rows))
    assert sums == [45, 90, 90]


def test_questions_are_called_by_their_numbers(book: Book) -> None:
    """The plan for one lecture links to three questions, and its longer version to two more."""
    text = (book.source / "teach.md").read_text(encoding="utf-8")
    listed = (book.source / "teach" / "questions.toml").read_text(encoding="utf-8")
    names = re.findall(r'^name = "(.*)"$', listed, re.MULTILINE)
    links = re.findall(r"\[(\d+)\]\(#question-([\w-]+)\)", text)
    assert len(links) == 5
    for number, name in links:
        assert names[int(number) - 1] == name


def test_the_plan_for_one_lecture_names_slides_that_exist(book: Book) -> None:
    text = (book.source / "teach.md").read_text(encoding="utf-8")
    plan = text.partition("fit the plan. ")[2].partition("\n\n")[0]
    parts = re.findall(r"From lecture (\d): (.*?)(?=From lecture|$)", plan, re.DOTALL)
    named = {number: re.findall(r'"(.*?)\.?"', titles) for number, titles in parts}
    assert {number: len(titles) for number, titles in named.items()} == {"1": 9, "3": 1}
    for number, titles in named.items():
        slides = (book.source / "_slides" / f"lecture-{number}.md").read_text(encoding="utf-8")
        for title in titles:
            assert re.search(rf"^## {re.escape(title)}(?: \{{|$)", slides, re.MULTILINE), title
