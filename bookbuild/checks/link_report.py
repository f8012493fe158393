"""Reads the report of Sphinx's link checker."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
BROKEN = ("broken", "timeout")


def read(report: Path) -> list[Answer]:
    """The result for each external link."""
    answers = [json.loads(line) for line in report.read_text(encoding="utf-8").splitlines()]
    return [answer for answer in answers if answer["uri"].startswith(("http:", "https:"))]


def count(answers: Iterable[Answer], status: str) -> int:
    """The number of links with this status."""
    return sum(answer["status"] == status for answer in answers)


def problems_in(answers: Iterable[Answer]) -> Iterator[str]:
    """One line per broken link: where it is, and what the server answered."""
    for answer in answers:
        if answer["status"] in BROKEN:
            yield f"{_place(answer)}: {answer['uri']}: {' '.join(answer['info'].split())}"


def moved(answers: Iterable[Answer]) -> Iterator[str]:
    """One line per link that has moved permanently."""
    for answer in answers:
        if answer["status"] == "redirected" and answer["code"] in (301, 308):
            yield f"{_place(answer)}: {answer['uri']} has moved to {answer['info']}"


def _place(answer: Answer) -> str:
    return f"book/{answer['filename']}:{answer['lineno']}"
