"""Prints what the site's checks measured, page by page: `python -m tests.site.report`."""

import json
from pathlib import Path
from typing import Any

from tests.site.pages import PAGES

REPORT = Path(__file__).resolve().parents[2] / "_build" / "site-report"
FORMS = ("mobile", "desktop")
HEAD = (
    "| page | KB on load | KB read through | shift "
    "| mobile P / A / B / S / host | desktop P / A / B / S / host |"
)


def figures(kind: str, page: str) -> dict[str, Any]:
    """A page's measurements; empty if there are none."""
    path = REPORT / kind / f"{page.replace('/', '~')}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def row(page: str) -> str:
    """One line of the table."""
    weight = figures("weight", page)
    cells = [f"{weight[key] / 1024:.0f}" if weight else "" for key in ("load", "read")]
    cells.append(f"{weight['shift']:.3f}" if weight else "")
    cells += [" / ".join(map(str, figures(f"lighthouse-{form}", page).values())) for form in FORMS]
    return f"| {' | '.join([page, *cells])} |"


def main() -> None:
    """Print the table."""
    print(HEAD, "|---|---|---|---|---|---|", *map(row, PAGES), sep="\n")


if __name__ == "__main__":
    main()
