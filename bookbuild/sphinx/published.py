"""Sphinx extension: canonical URLs, a sitemap and robots.txt for a published site.

The URL isn't part of the book: it comes from BOOK_URL, for example
`BOOK_URL=https://example.org/course/ make book`. Without it, the pages don't state their URLs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from sphinx.application import Sphinx
from sphinx.config import Config

NOT_FOR_SEARCH_ENGINES = ("search", "404", "genindex")


def setup(app: Sphinx) -> dict[str, Any]:
    """Set the URL early; write the lists of pages late."""
    app.connect("config-inited", _set_address)
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _set_address(_app: Sphinx, config: Config) -> None:
    address = os.environ.get("BOOK_URL", "")
    config.html_baseurl = f"{address.rstrip('/')}/" if address else ""


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    base, out = app.config.html_baseurl, Path(app.outdir)
    names = sorted(name for name in app.env.all_docs if name not in NOT_FOR_SEARCH_ENGINES)
    robots = "User-agent: *\nAllow: /\n"
    (out / "sitemap.xml").unlink(missing_ok=True)
    if base:
        lines = [f"  <url><loc>{escape(base + name)}.html</loc></url>" for name in names]
        (out / "sitemap.xml").write_text(
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
            + "\n".join(lines)
            + "\n</urlset>\n",
            encoding="utf-8",
        )
        robots += f"Sitemap: {base}sitemap.xml\n"
    (out / "robots.txt").write_text(robots, encoding="utf-8")
