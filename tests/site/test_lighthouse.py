"""Lighthouse's marks for every page. Run alone: what runs beside it costs performance."""

import json
import statistics
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from bookbuild.chromium import FLAGS, find_chromium
from tests.site.node_tools import NODE, environment, install
from tests.site.pages import PAGES

MARKS = ("performance", "accessibility", "best-practices", "seo")
# What the median of the runs must reach. The site's targets are 97 on a phone and 100 on a desktop;
# simulated phones on a busy machine cost a few points, so the test asks for a little less.
PERFORMANCE = {"mobile": 95, "desktop": 99}
AT_LEAST_BEFORE_FAILING = 3  # runs: one alone may have met a busy moment

CHROME_FLAGS = " ".join(("--headless=new", "--no-sandbox", *FLAGS)).replace(" , ", ",")


def lighthouse(url: str, form: str) -> dict[str, Any]:
    """Run Lighthouse on one page, and return its report."""
    command = [
        NODE,
        install() / "lighthouse" / "cli" / "index.js",
        url,
        "--quiet",
        "--output=json",
        "--no-enable-error-reporting",
        f"--chrome-flags={CHROME_FLAGS}",
        *(["--preset=desktop"] if form == "desktop" else []),
    ]
    found = subprocess.run(
        [str(part) for part in command],
        env={**environment(), "CHROME_PATH": find_chromium()},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    )
    return json.loads(found.stdout)  # type: ignore[no-any-return]


def marks(report: dict[str, Any]) -> dict[str, int]:
    """The four marks out of 100."""
    return {name: round(100 * report["categories"][name]["score"]) for name in MARKS}


def median(reports: list[dict[str, Any]]) -> dict[str, int]:
    """The middle mark of several reports, each mark by itself."""
    found = [marks(report) for report in reports]
    return {name: statistics.median_low([one[name] for one in found]) for name in MARKS}


def reached(found: dict[str, int], form: str) -> bool:
    """Whether the marks are those that the site is to have."""
    return found["performance"] >= PERFORMANCE[form] and all(
        found[name] == 100 for name in MARKS[1:]
    )


def lost(report: dict[str, Any], category: str) -> list[str]:
    """What cost points in a category."""
    audits = report["audits"]
    return [
        f"{ref['id']}: {audits[ref['id']]['title']}"
        for ref in report["categories"][category]["auditRefs"]
        if ref["weight"] and audits[ref["id"]]["score"] not in (None, 1)
    ]


@pytest.mark.parametrize("form", ["mobile", "desktop"])
@pytest.mark.parametrize("name", PAGES)
def test_marks(
    site: str,
    name: str,
    form: str,
    record: Callable[[str, str, dict[str, Any]], None],
    request: pytest.FixtureRequest,
) -> None:
    def measure() -> dict[str, Any]:
        return lighthouse(f"{site}{name}.html", form)

    reports = [measure() for _ in range(request.config.getoption("--lighthouse-runs"))]
    while not reached(median(reports), form) and len(reports) < AT_LEAST_BEFORE_FAILING:
        reports.append(measure())
    found = median(reports)
    record(f"lighthouse-{form}", name, found)
    assert reached(found, form), {
        name: (found[name], lost(reports[0], name)) for name in MARKS if found[name] < 100
    }
