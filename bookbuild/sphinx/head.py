"""Sphinx extension: what the head of a page says, and which scripts it loads."""

from __future__ import annotations

from typing import Any

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.application import Sphinx

# Pages that Sphinx makes have no front matter to describe them.
DESCRIPTIONS = {
    "genindex": "The index of the course on layer normalization: every function, class and term, "
    "with a link to where it is explained.",
    "search": "Search all pages of the course on layer normalization. The search runs in your "
    "browser; nothing that you type is sent anywhere.",
    "404": "There is no such page in the course on layer normalization. From here you can go to "
    "the contents or search the course.",
}
# Scripts that come with the theme and the extensions, and what a page has that needs them. Those
# of the theme are replaced by site.js.
NEEDED_FOR: dict[str, str | None] = {
    "documentation_options.js": None,
    "doctools.js": None,
    "sphinx_highlight.js": None,
    "scripts/sphinx-book-theme.js": None,
    "design-tabs.js": 'class="sd-tab-set',
}
SEARCH = ("documentation_options.js", "doctools.js", "sphinx_highlight.js")
TEXT_FONT = "fonts/LNSans.woff2"
FORMULA_FONTS = ("katex/fonts/KaTeX_Main-Regular.woff2", "katex/fonts/KaTeX_Math-Italic.woff2")


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect after those who add scripts."""
    app.connect("html-page-context", _describe)
    app.connect("html-page-context", _load, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _describe(
    app: Sphinx, page: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    # Docutils writes `viewport` and `generator` too, which the page has or does not need.
    meta = BeautifulSoup(context.get("metatags", ""), "html.parser")
    tag = meta.find("meta", attrs={"name": "description"})
    context["metatags"] = ""
    context["description"] = tag["content"] if tag else DESCRIPTIONS.get(page, "")
    context["html_baseurl"] = app.config.html_baseurl
    context["social_card"] = f"{app.config.html_baseurl}_static/social-card.png"
    formulas = doctree is not None and any(
        doctree.findall(lambda node: isinstance(node, nodes.math | nodes.math_block))
    )
    fonts = [TEXT_FONT, *(FORMULA_FONTS if formulas else ())]
    context["preloaded_fonts"] = [context["pathto"](f"_static/{name}", 1) for name in fonts]


def _load(
    _app: Sphinx, page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    body = context.get("body", "")
    kept = []
    for script in context["script_files"]:
        name = str(getattr(script, "filename", "") or "").removeprefix("_static/").split("?")[0]
        if not name:
            # Inline: DOCUMENTATION_OPTIONS of the theme, which the search alone reads.
            if page == "search" or "DOCUMENTATION_OPTIONS" not in script.attributes.get("body", ""):
                kept.append(script)
        elif page == "search" and name in SEARCH:
            kept.append(script)
        elif name not in NEEDED_FOR or ((sign := NEEDED_FOR[name]) and sign in body):
            script.attributes.setdefault("defer", "defer")
            kept.append(script)
    context["script_files"] = kept
