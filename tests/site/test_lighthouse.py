"""Lighthouse scores for all pages or a sample. Run this alone: other load lowers the scores."""

import itertools
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from bookbuild.pdf.chromium import FLAGS, find_chromium
from tests.site.marks import ENOUGH_RUNS, Report, judge
from tests.site.node_tools import NODE, environment, install
from tests.site.pages import BOTH, PAGES, SAMPLE
from tests.site.visit import PATIENCE

CHROME_FLAGS = " ".join(("--headless=new", "--no-sandbox", *FLAGS)).replace(" , ", ",")
RUN_SECONDS = 900  # a run takes 15 s on an idle machine


def lighthouse(url: str, form: str) -> Report:
    """Run Lighthouse on one page, and return its report."""
    command = [
        NODE,
        install() / "lighthouse" / "cli" / "index.js",
        url,
        "--quiet",
        "--output=json",
        "--no-enable-error-reporting",
        f"--max-wait-for-load={PATIENCE}",
        f"--chrome-flags={CHROME_FLAGS}",
        *(["--preset=desktop"] if form == "desktop" else []),
    ]
    found = subprocess.run(
        [str(part) for part in command],
        env={**environment(), "CHROME_PATH": find_chromium()},
        capture_output=True,
        text=True,
        check=True,
        timeout=RUN_SECONDS,
    )
    return json.loads(found.stdout)  # type: ignore[no-any-return]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every page on phone and desktop, or only the sample."""
    if "form" not in metafunc.fixturenames:
        return
    everything = list(itertools.product(PAGES, BOTH))
    sample = [(page, form) for page, (forms, _) in SAMPLE.items() for form in forms]
    asked = metafunc.config.getoption("--lighthouse-sample")
    metafunc.parametrize(("name", "form"), sample if asked else everything)


def test_marks(
    site: str,
    name: str,
    form: str,
    record: Callable[[str, str, dict[str, Any]], None],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measure() -> Report:
        return lighthouse(f"{site}{name}.html", form)

    reports = [measure() for _ in range(request.config.getoption("--lighthouse-runs"))]
    while judge(name, form, reports).faults and len(reports) < ENOUGH_RUNS:
        reports.append(measure())
    verdict = judge(name, form, reports)
    record(f"lighthouse-{form}", name, {**verdict.marks, "host": round(verdict.index)})
    if verdict.note:
        with capsys.disabled():
            print(f"\n{verdict.note}")
    assert verdict.faults == {}
