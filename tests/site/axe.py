"""Runs axe in an open page."""

from collections.abc import Iterator
from typing import Any

from playwright.sync_api import Page

from tests.site.node_tools import install
from tests.site.visit import Visit, switch_to

RUN = """async ([rules, context]) => (await axe.run(context ?? document, {
    resultTypes: ["violations"], ...(rules && {runOnly: {type: "rule", values: rules}}),
})).violations.map((one) => ({
    rule: one.id,
    help: one.help,
    where: one.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} (${node.any
        .map((check) => check.message).join("; ").slice(0, 160)})`),
}))"""
# The rules that a color mode can break: it changes colors and which variant of a picture is shown.
COLORS_AND_PICTURES = [
    "color-contrast",
    "link-in-text-block",
    "image-alt",
    "image-redundant-alt",
    "role-img-alt",
    "svg-img-alt",
]
# Everything else that the rules check: the elements, and which of them are visible.
REMEMBER = """() => {
    const state = () => ({
        markup: document.body.outerHTML,
        seen: [...document.querySelectorAll("body :not(img)")].map((element) =>
            element.checkVisibility({opacityProperty: true, visibilityProperty: true})),
    });
    const first = state();
    window.changed = () => {
        const now = state();
        if (now.markup !== first.markup) return ["the markup"];
        return [...document.querySelectorAll("body :not(img)")]
            .filter((_, i) => now.seen[i] !== first.seen[i])
            .map((element) => element.outerHTML.slice(0, 120));
    };
}"""


def script() -> str:
    """The source of axe, which runs inside the page, so nothing has to be loaded."""
    return (install() / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def violations(
    page: Page, axe: str, rules: list[str] | None = None, *, within: str | None = None
) -> list[dict[str, Any]]:
    """What axe finds on a page, or within some of its elements, with some or all rules."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(axe)
    return page.evaluate(RUN, [rules, within])  # type: ignore[no-any-return]


def broken_rules(seen: Visit, axe: str, *, dark: bool = True) -> Iterator[str]:
    """What axe finds in light mode with all rules, and in dark mode with COLORS_AND_PICTURES.

    If `dark` is false, dark mode isn't checked.
    """
    switch_to(seen.page, "dark")  # a text font that arrived late is used from the first switch on
    switch_to(seen.page, "light")
    for found in violations(seen.page, axe):
        yield f"light mode breaks a rule of axe: {found}"
    if not dark:
        return
    seen.page.evaluate(REMEMBER)
    switch_to(seen.page, "dark")
    for changed in seen.page.evaluate("changed()"):
        yield f"dark mode changes more than colors and pictures: {changed}"
    for found in violations(seen.page, axe, COLORS_AND_PICTURES):
        yield f"dark mode breaks a rule of axe: {found}"
