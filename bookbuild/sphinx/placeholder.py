"""Sphinx extension: placeholders that templates fill in after all pages have been read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from bookbuild.errors import BookError

MARK = "has-placeholders"


def setup(app: Sphinx) -> dict[str, Any]:
    """Fill in the placeholders, and write their pages in every build."""
    app.lnbook_placeholders = {}  # type: ignore[attr-defined]
    app.add_node(Placeholder, html=(_render, None))
    app.connect("env-updated", _pages)
    app.connect("doctree-resolved", _fill)
    # The version makes Sphinx reread all pages that were saved without placeholders.
    return {"env_version": 1, "parallel_read_safe": True, "parallel_write_safe": True}


class Placeholder(nodes.General, nodes.Element):  # type: ignore[misc]
    """A part of a page that a template renders; search ignores it.

    Attributes:
        template: the name of the template.
        values: its variables.
        directive: instead of both, the directive that they belong to.
    """


class Insert(SphinxDirective):
    """A directive that takes no arguments and inserts a placeholder."""

    def run(self) -> list[nodes.Node]:
        """Insert the placeholder, and remember its page."""
        self.env.metadata[self.env.docname][MARK] = "yes"
        return [Placeholder(directive=self.name)]


def add_placeholder(
    app: Sphinx, name: str, template: str, values: Callable[[Sphinx, str], dict[str, Any]]
) -> None:
    """Add a directive that renders a template.

    Args:
        app: Sphinx.
        name: the directive.
        template: the name of the template.
        values: computes the template's variables for a page, given its name.
    """
    app.setup_extension("bookbuild.sphinx.placeholder")
    app.add_directive(name, Insert)
    app.lnbook_placeholders[name] = template, values  # type: ignore[attr-defined]


def relative(page: str, target: str) -> str:
    """A URL relative to the site's root, as a link on a page."""
    return "../" * page.count("/") + target


def _pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """The pages to write in every build: Sphinx doesn't know what they depend on."""
    del app
    return [name for name, metadata in env.metadata.items() if MARK in metadata]


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    if app.builder.format != "html":
        return
    for node in doctree.findall(Placeholder):
        if "directive" in node:
            node["template"], values = app.lnbook_placeholders[node["directive"]]  # type: ignore[attr-defined]
            try:
                node["values"] = values(app, docname)
            except BookError as error:
                raise ExtensionError(str(error)) from None


def _render(translator: HTML5Translator, node: Placeholder) -> None:
    templates = translator.builder.templates
    assert templates is not None
    translator.body.append(templates.render(node["template"], node["values"]))
    raise nodes.SkipNode
