"""Exercises answered on the page: with a keyboard, on a phone, and without scripts."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.site import axe
from tests.site.visit import DESKTOP, PHONE, layout_shift, visit

OpenPage = Callable[..., Page]
PAGE = "formula/step-by-step.html"
WIDTHS = pytest.mark.parametrize("width", [DESKTOP, PHONE])


@WIDTHS
def test_an_answer_is_judged_on_the_page(open_page: OpenPage, width: int) -> None:
    page = open_page(PAGE, width=width)
    form = page.locator("#exercise-by-hand form")
    form.scroll_into_view_if_needed()
    verdict = form.get_by_role("status")
    form.get_by_label("mean", exact=True).fill("5")
    form.get_by_label("variance", exact=True).fill("8.67")
    page.keyboard.press("Enter")
    expect(verdict).to_have_text(
        "Not yet. Your variance divides by H - 1. LayerNorm divides by H = 4."
    )
    form.get_by_label("variance", exact=True).fill("6.5")
    expect(verdict).to_be_empty()  # the verdict was about the earlier answer
    row = ("\N{MINUS SIGN}1.57", "0", "0,39", "1.18")
    for place, text in enumerate(row, 1):
        form.get_by_label(f"normalized, number {place} of 4").fill(text)
    form.get_by_role("button", name="Check").click()
    expect(verdict).to_have_text(
        "Correct. Mean, variance and all four normalized values are right."
    )
    box, inside = form.bounding_box(), verdict.bounding_box()
    assert box
    assert inside
    assert inside["x"] + inside["width"] <= box["x"] + box["width"] + 1 <= width
    assert layout_shift(page, explained=False) < 0.01  # a verdict moves what's below it


def test_a_form_is_accessible_after_a_verdict(browser: Browser, site: str, axe_script: str) -> None:
    """test_pages.py checks the form before there's a verdict."""
    with visit(browser, site, PAGE) as seen:
        seen.lay_out()
        form = seen.page.locator("#exercise-by-hand form")
        form.get_by_role("button").click()
        expect(form.get_by_role("status")).not_to_be_empty()
        assert list(axe.broken_rules(seen, axe_script)) == []


def test_without_scripts_there_is_no_form(open_page: OpenPage) -> None:
    page = open_page(PAGE, scripts=False)
    expect(page.locator("#exercise-by-hand form")).to_be_hidden()


def test_the_form_works_from_a_file(open_page: OpenPage) -> None:
    page = open_page(PAGE, scheme="file")
    form = page.locator("#exercise-scaled-eps form")
    form.get_by_label("eps").fill("1e-9")
    form.get_by_role("button").click()
    expect(form.get_by_role("status")).to_contain_text("Correct.")


def test_other_exercises_lead_to_the_notebook(open_page: OpenPage) -> None:
    page = open_page(PAGE)
    link = page.locator("#exercise-undo").get_by_role("link", name="the chapter's notebook")
    with page.expect_download() as started:
        link.click()
    assert started.value.suggested_filename == "step-by-step.ipynb"


@WIDTHS
def test_words_and_letters_are_judged_too(open_page: OpenPage, width: int) -> None:
    page = open_page("formula/what-is-normalized.html", width=width)
    form = page.locator("#exercise-twice form")
    form.get_by_label("c", exact=True).check()
    form.get_by_role("button").click()
    expect(form.get_by_role("status")).to_contain_text("(a) belongs in the list.")
    for letter, ticked in (("a", True), ("b", True), ("c", False), ("d", True)):
        form.get_by_label(letter, exact=True).set_checked(ticked)
    form.get_by_role("button").click()
    expect(form.get_by_role("status")).to_contain_text("Correct.")

    page = open_page("transformer/adaptive.html", width=width)
    form = page.locator("#exercise-adaptive-starts form")
    for letter, word in (("a", "learns"), ("b", "stuck"), ("c", "learns"), ("d", "differs")):
        form.get_by_role("button").click()
        expect(form.get_by_role("status")).to_have_text(f"Not yet. {letter} is still missing.")
        form.get_by_label(letter, exact=True).select_option(word)
    form.get_by_role("button").click()
    expect(form.get_by_role("status")).to_contain_text("Correct.")
