"""What the tests of live figures share: finding a figure, and reading its numbers."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Locator, Page

from bookbuild.sphinx.playground import KINDS
from tests.site.visit import DESKTOP, PHONE, next_frame

__all__ = ["EXACT", "KINDS", "WIDTHS", "OpenPage", "everything", "figure", "shown"]

OpenPage = Callable[..., Page]
EXACT = {"rtol": 1e-12, "atol": 1e-12}
WIDTHS = pytest.mark.parametrize("width", [DESKTOP, PHONE])


def figure(page: Page, kind: str, *, tour: bool = False) -> Locator:
    """A live figure, past its guided tour unless the tour is what's being tested."""
    root = page.locator(f"[data-playground={kind}][data-live]")
    explore = root.get_by_role("button", name="Explore freely")
    if not tour and explore.count():
        explore.click()
        next_frame(page)
    return root


def shown(root: Locator, name: str) -> float:
    """A number on the page, with all of its digits."""
    return float(root.locator(f"data[data-name='{name}']").get_attribute("value") or "nan")


def everything(root: Locator) -> dict[str, Any]:
    text = root.locator("data[data-name=all]").get_attribute("value")
    return json.loads(text)  # type: ignore[arg-type, no-any-return]
