"""The teacher's page: its plans add up."""

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
    """The plan for one lecture links three of them."""
    text = (book.source / "teach.md").read_text(encoding="utf-8")
    listed = (book.source / "teach" / "questions.toml").read_text(encoding="utf-8")
    names = re.findall(r'^name = "(.*)"$', listed, re.MULTILINE)
    links = re.findall(r"\[(\d+)\]\(#question-([\w-]+)\)", text)
    assert len(links) == 3
    for number, name in links:
        assert names[int(number) - 1] == name
