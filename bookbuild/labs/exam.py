"""The question bank for exams: one file with questions, and one with solutions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bookbuild.errors import BookError

KINDS = ("by hand", "derive", "explain", "debug", "design")
HEADINGS = ("By hand, with numbers", "Derive", "Explain", "Debug code", "Design")
TEXTS = ("name", "kind", "asks", "solution")


@dataclass(frozen=True)
class ExamQuestion:
    """A question for an exam.

    Attributes:
        name: a short name.
        kind: one of `KINDS`.
        points: the points for a complete answer.
        minutes: the time that a prepared student needs.
        asks: the question, in Markdown.
        solution: the worked solution, in Markdown.
        values: the numbers in the solution, which a test checks.
    """

    name: str
    kind: str
    points: int
    minutes: int
    asks: str
    solution: str
    values: dict[str, Any] = field(default_factory=dict)


def read(path: Path, shown: str) -> tuple[ExamQuestion, ...]:
    """Read and check the questions, and sort them by kind.

    Raises:
        BookError: if a question is incomplete, or two questions have the same name.
    """
    given = tomllib.loads(path.read_text(encoding="utf-8")).get("questions", [])
    problems, names = [], [one.get("name") for one in given]
    for one in given:
        missing = [key for key in TEXTS if not str(one.get(key, "")).strip()]
        if missing or one["kind"] not in KINDS:
            problems.append(f"{shown}: {one.get('name')}: missing {missing}, or an unknown kind")
        elif min(one.get("points", 0), one.get("minutes", 0)) < 1:
            problems.append(f"{shown}: {one['name']}: points and minutes have to be positive")
        elif names.count(one["name"]) > 1:
            problems.append(f"{shown}: {one['name']} occurs twice")
    if problems:
        raise BookError(*problems)
    questions = [ExamQuestion(**one) for one in given]
    return tuple(sorted(questions, key=lambda one: KINDS.index(one.kind)))


def as_markdown(questions: Iterable[ExamQuestion], *, solutions: bool) -> str:
    """All questions as one Markdown document, with or without solutions."""
    questions = list(questions)
    what = "questions with solutions" if solutions else "questions"
    lines = [
        f"# Layer normalization: {len(questions)} exam {what}",
        "From the course on layer normalization, licensed CC BY 4.0. The times are about what a "
        "prepared student needs. $\\gamma$ and $\\beta$ are scale and shift, $\\epsilon$ is the "
        "number added under the square root, and variances are biased (divided by the number of "
        "values) unless the question says otherwise.",
    ]
    number = 0
    for kind, heading in zip(KINDS, HEADINGS, strict=True):
        lines.append(f"## {heading}")
        for question in (one for one in questions if one.kind == kind):
            number += 1
            lines.append(f"### {number}. ({question.points} points, {question.minutes} minutes)")
            lines.append(question.asks)
            if solutions:
                lines.append(f"**Solution.** {question.solution}")
    return "\n\n".join(lines) + "\n"


def overview(questions: Iterable[ExamQuestion]) -> list[tuple[str, int, int, int]]:
    """For each kind: its heading, and how many questions, points and minutes it has."""
    questions = list(questions)
    rows = []
    for kind, heading in zip(KINDS, HEADINGS, strict=True):
        those = [one for one in questions if one.kind == kind]
        points, minutes = sum(one.points for one in those), sum(one.minutes for one in those)
        rows.append((heading, len(those), points, minutes))
    return rows
