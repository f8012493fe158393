"""Sphinx extension: cards that show what a link leads to, without leaving the page.

For each page with targets that have cards, `_static/previews/` has a script with their contents.
`previews.js` is on every page; it loads such a script when a reader points at a link, focuses it or
taps it. Scripts also work for pages opened as files, which can't fetch other pages. Without
JavaScript, the links are just links.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from bookbuild.site.previews import snippets

TARGET = "previews"  # inside the site's _static folder


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the cards' contents after the pages, and add the script."""
    app.connect("build-finished", _write)
    app.add_js_file("previews.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    folder = Path(app.outdir) / "_static" / TARGET
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = [
        name for name in sorted(app.env.all_docs) if (Path(app.outdir) / f"{name}.html").exists()
    ]
    for name, shown in snippets(Path(app.outdir), names).items():
        data = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
        text = f"lnPreviews({json.dumps(name)},{data});\n"
        (folder / f"{name.replace('/', '~')}.js").write_text(text, encoding="utf-8")
