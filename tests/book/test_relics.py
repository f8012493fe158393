"""The most common relics of translated English don't come back.

The list is short on purpose: each phrase is wrong or stiff nearly everywhere, and is listed with
what to write instead. Only a reader can tell whether a text reads well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("book", "lnbook", "bookbuild", "benchmarks", "mutation", "tests")
ENDINGS = (".md", ".py", ".yml", ".in")
RELICS = {
    r"stands?\b(?!-in)(?! (for|out|apart|still|alone|by|up|upright)\b)": "is, goes, comes, appears",
    r"but for (?!\w+ (it|them|this|that)\b)": "except for, apart from, up to",
    r"mend(s|ed|ing)?": "fix, repair",
    r"hands? on": "passes on, outputs",
    r"(is|are) told by": "says, tells, measures",
    r"rightly": "correctly",
    r"foretells?": "predicts",
    r"whoever": "anyone who, if you",
    r"you may read that": "a common claim is that",
    r"(is|are) to be seen": "you can see, shows",
    r"in the place of": "in place of, instead of",
    r"a trifle": "slightly",
}
PATTERNS = {re.compile(rf"\b{text}", re.IGNORECASE): use for text, use in RELICS.items()}


def findings(text: str) -> Iterator[str]:
    """Each relic in a text, with its line and what to write instead."""
    for number, line in enumerate(text.splitlines(), start=1):
        for pattern, use in PATTERNS.items():
            found = pattern.search(line)
            if found:
                yield f"{number}: '{found[0].strip()}': try {use}"


def texts() -> list[Path]:
    """Texts written by people, except executed notebooks and this list itself."""
    inside = [p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.suffix in ENDINGS]
    top = [p for p in ROOT.glob("*.md") if not p.name.startswith("THIRD-PARTY")]
    ours = (p for p in inside + top if "node_modules" not in p.parts)
    return sorted(p for p in ours if p != Path(__file__))


def test_no_relics() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{finding}"
        for path in texts()
        for finding in findings(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("It matters where epsilon stands.", 1),
        ("A stand-in for the loss.", 0),
        ("An int stands for one dimension, and one feature stands out.", 0),
        ("They are equal but for rounding.", 1),
        ("It has been mended; we recommend it.", 1),
        ("A norm hands on rows.", 1),
        ("The amendment is right.", 0),
    ],
)
def test_what_counts_as_a_relic(line: str, count: int) -> None:
    assert len(list(findings(line))) == count
