"""Every page keeps the rules of axe, in light and dark mode, and on a phone."""

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from tests.site.node_tools import install
from tests.site.pages import PAGES
from tests.site.visit import DESKTOP, PHONE, visit

RUN = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
    (one) => ({
        rule: one.id,
        help: one.help,
        where: one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} (${node.any
            .map((check) => check.message).join("; ").slice(0, 160)})`),
    }))"""


@pytest.fixture(scope="session")
def axe() -> str:
    return (install() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(page: Page, axe: str) -> list[dict[str, Any]]:
    """What axe finds; the script runs in the page, so that nothing has to be loaded."""
    page.evaluate(axe)
    return page.evaluate(RUN)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("width", "mode"), [(DESKTOP, "light"), (DESKTOP, "dark"), (PHONE, "light"), (PHONE, "dark")]
)
@pytest.mark.parametrize("name", PAGES)
def test_page(browser: Browser, site: str, axe: str, name: str, width: int, mode: str) -> None:
    with visit(browser, site, f"{name}.html", width=width, mode=mode) as seen:
        assert violations(seen.page, axe) == []


def test_axe_finds_what_is_wrong(browser: Browser, axe: str, tmp_path: Path) -> None:
    page = '<html lang="en"><title>t</title><main><h1>h</h1><img src="data:,"></main></html>'
    (tmp_path / "page.html").write_text(page)
    with visit(browser, f"{tmp_path.as_uri()}/", "page.html") as seen:
        assert [one["rule"] for one in violations(seen.page, axe)] == ["image-alt"]
