"""LayerNorm on one page fits on one sheet of paper."""

from pathlib import Path

import pypdfium2
import pytest
from playwright.sync_api import Browser

from tests.site.visit import MODES, PHONE, visit

NAME = "one-page"


@pytest.mark.parametrize("paper", ["A4", "Letter"])
@pytest.mark.parametrize("mode", MODES)
def test_it_prints_on_one_sheet(
    browser: Browser, site: str, tmp_path: Path, paper: str, mode: str
) -> None:
    with visit(browser, site, f"{NAME}.html", mode=mode) as seen:
        seen.page.pdf(path=tmp_path / "sheet.pdf", format=paper)
    document = pypdfium2.PdfDocument(tmp_path / "sheet.pdf")
    assert len(document) == 1
    text = " ".join(document[0].get_textpage().get_text_bounded().split())
    assert text.startswith("LayerNorm on one page")
    assert "Is it slow?" in text
    for absent in ("Previous", "On this page", "Search"):
        assert absent not in text


def test_on_a_phone_tables_scroll_in_their_own_boxes(browser: Browser, site: str) -> None:
    with visit(browser, site, f"{NAME}.html", width=PHONE) as seen:
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert seen.page.evaluate(wider) <= 1
