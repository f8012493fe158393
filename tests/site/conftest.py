"""Fixtures: the built site, over http and from files, and a browser that can't reach other hosts.

The tests for the PDF and the reading marks build their own small book instead.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from bookbuild.pdf.chromium import launch
from bookbuild.site import unchanged
from tests.book.conftest import built, small
from tests.site import axe
from tests.site.server import serve
from tests.site.visit import DESKTOP, PATIENCE, Visit, visit

__all__ = ["built", "small"]

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
REPORT = ROOT / "_build" / "site-report"
OpenPage = Callable[..., Page]
expect.set_options(timeout=PATIENCE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--lighthouse-runs", type=int, default=1, help="the median counts")
    parser.addoption(
        "--lighthouse-sample", action="store_true", help="score only the pages in pages.SAMPLE"
    )


@pytest.fixture(scope="session")
def html() -> Path:
    """The site's folder; the site must be up to date."""
    if not unchanged.is_unchanged(ROOT):
        pytest.exit("the site is out of date: run 'make book' first", returncode=1)
    return HTML


@pytest.fixture(scope="session")
def site(html: Path) -> Iterator[str]:
    """The site's URL, served the way a web host would serve it."""
    with serve(html) as address:
        yield address


@pytest.fixture(scope="session")
def files(html: Path) -> str:
    """The file:// URL of the site's folder, which needs no server."""
    return f"{html.as_uri()}/"


# Not session-wide: a thread can run only one Playwright at a time, and printing starts one, too.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, launch(playwright) as started:
        yield started


@pytest.fixture(scope="session")
def axe_script() -> str:
    return axe.script()


@pytest.fixture
def record() -> Callable[[str, str, dict[str, Any]], None]:
    """Stores a page's measurements for the table that `python -m tests.site.report` prints."""

    def keep(kind: str, page: str, figures: dict[str, Any]) -> None:
        path = REPORT / kind / f"{page.replace('/', '~')}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(figures), encoding="utf-8")

    return keep


@pytest.fixture
def open_page(browser: Browser, site: str, files: str) -> Iterator[OpenPage]:
    """Opens a page on the site; fails at the end if anything went wrong on it."""
    seen: list[Visit] = []
    with ExitStack() as stack:

        def opened(
            path: str,
            *,
            scheme: str = "http",
            width: int = DESKTOP,
            scripts: bool = True,
            still: bool = False,
        ) -> Page:
            opening = visit(
                browser,
                files if scheme == "file" else site,
                path,
                width=width,
                script=scripts,
                reduced_motion=still,
            )
            seen.append(stack.enter_context(opening))
            return seen[-1].page

        yield opened
        assert [fault for one in seen for fault in one.faults()] == []
