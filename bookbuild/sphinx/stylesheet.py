"""Sphinx extension: merges the style sheets of the theme and the extensions into one.

A style sheet that an extension adds only to some pages stays separate and is loaded only there. The
theme's fonts, scripts and other files that no page loads aren't published.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from bookbuild.site import figure_colors, formula_fallback, formula_fonts, stylesheet, used_names
from bookbuild.site.unchanged import sources_digest
from bookbuild.sphinx.playground import TARGET

NAME = "site.css"
# The theme's templates link to these; the rest come from app.add_css_file.
OF_THE_THEME = ("basic.css", "styles/pydata-sphinx-theme.css")
ICON_FONTS = ("Font Awesome 6 Free", "Font Awesome 6 Brands")  # the site draws its own icons
NOT_PUBLISHED = (
    *("locales", "vendor", "scripts", "styles", "images"),
    *("sbt-webpack-macros.html", "webpack-macros.html"),
    *("searchtools.js", "language_data.js", "doctools.js", "sphinx_highlight.js"),
    "documentation_options.js",
    *("file.png", "plus.png", "minus.png", "copy-button.svg", "check-solid.svg"),
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Link the merged style sheet once the others are known, and write it at the end."""
    app.connect("builder-inited", _begin)
    app.connect("html-page-context", _link, priority=950)
    app.connect("build-finished", _finish, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _begin(app: Sphinx) -> None:
    app.lnbook_version = sources_digest(Path(app.confdir).parent)[:8]  # type: ignore[attr-defined]


def _everywhere(app: Sphinx) -> list[str]:
    """The style sheets that every page has, in order, without duplicates."""
    sheets = sorted(app.builder._orig_css_files, key=lambda sheet: sheet.priority)  # type: ignore[attr-defined]
    names = [_name(sheet) for sheet in sheets]
    return list(dict.fromkeys([*OF_THE_THEME, *names]))


def _name(sheet: Any) -> str:
    return re.sub(r"^_static/|\?.*$", "", str(sheet.filename))


def _link(
    app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: object
) -> None:
    everywhere = set(_everywhere(app))
    only_here = {
        _name(sheet): sheet for sheet in context["css_files"] if _name(sheet) not in everywhere
    }
    # The version makes browsers fetch the file again when anything has changed.
    one = f"_static/{NAME}?v={app.lnbook_version}"  # type: ignore[attr-defined]
    context["css_files"] = [one, *only_here.values()]


def _finish(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    names = _everywhere(app)
    own = {path for path in static.glob("*.css") if path.name not in names and path.name != NAME}
    scripts = [path for path in static.glob("*.js") if path.name != "searchindex.js"]
    known = used_names.of(
        (path.read_text(encoding="utf-8") for path in _pages(Path(app.outdir))),
        (path.read_text(encoding="utf-8") for path in sorted({*own, *scripts})),
    )
    drawings = (path.read_text(encoding="utf-8") for path in (static / TARGET).glob("*.*"))
    known.variables.update(*map(used_names.VARIABLE.findall, drawings))
    fonts = static / "katex" / "fonts"
    sheets = [
        ("palette", figure_colors.tokens()),
        ("formula fallback", formula_fallback.font_faces(fonts, known.formula_letters)),
    ]
    sheets += [
        (name, (static / name).read_text(encoding="utf-8"))
        for name in names
        if (static / name).exists()
    ]
    text = stylesheet.combine(sheets, known, ICON_FONTS)
    (static / NAME).write_text(text, encoding="utf-8")
    formula_fonts.shrink(fonts, known.formula_letters, known.bold_letters, text)
    for name in (*NOT_PUBLISHED, *names):
        path = static / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _pages(html: Path) -> Iterator[Path]:
    return (path for path in html.rglob("*.html") if path.relative_to(html).parts[0][0] != "_")
