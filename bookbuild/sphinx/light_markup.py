"""Sphinx extension: writes code and signatures without elements that change nothing.

Pygments puts every name, bracket and space into an element of its own, and Sphinx puts every word
of a signature into two. On a page of the API reference, that's almost half of all elements.
"""

from __future__ import annotations

import re
from typing import Any

from pygments.formatters import HtmlFormatter
from pygments.token import Name, Punctuation, Text, Whitespace
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge

SIGNATURE = re.compile(r'<dt class="sig .*?</dt>', re.DOTALL)
WORD = re.compile(r'<span class="pre">([^<]*)</span>')
# The first name in a parameter is the parameter's, which the style sheet emphasizes.
PLAIN = re.compile(
    r'<span class="[pw]">([^<]*)</span>'
    r'|(?<!<em class="sig-param">)<span class="n">((?:<a [^>]*>[^<]*</a>|[^<])*)</span>'
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Install the code formatter, and shorten the signatures on finished pages."""
    PygmentsBridge.html_formatter = Formatter
    app.connect("html-page-context", _shorten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Formatter(HtmlFormatter):  # type: ignore[misc]
    """Writes tokens that look like plain text as plain text."""

    def _get_css_classes(self, ttype: Any) -> str:
        plain = ttype in (Name, Punctuation, Text, Whitespace)
        return "" if plain else super()._get_css_classes(ttype)


def signatures(html: str) -> str:
    """A page's HTML with simpler signatures.

    Example:
        >>> signatures('<dt class="sig a"><span class="p"><span class="pre">:</span></span></dt>')
        '<dt class="sig a">:</dt>'
    """
    return SIGNATURE.sub(lambda found: _signature(found[0]), html)


def _signature(html: str) -> str:
    html = WORD.sub(r"\1", html)
    for _ in range(2):  # a type made of several names is one element around others
        html = PLAIN.sub(r"\1\2", html)
    return html


def _shorten(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: object
) -> None:
    del app, page, template, doctree
    if "body" in context:
        context["body"] = signatures(context["body"])
