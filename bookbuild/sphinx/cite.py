"""Sphinx extension: how to cite a page, and the license of each figure.

The authors, the version and the date come from CITATION.cff. A citation gives the site's URL if
it's known (BOOK_URL), or else the repository's if that's known.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from bookbuild.site import license as figure_license
from bookbuild.sphinx.repository import address, contributors

FILE = "CITATION.cff"
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class Course:
    """What CITATION.cff says about the course."""

    title: str
    author: str
    version: str
    released: str

    @property
    def year(self) -> str:
        """The year of the version."""
        return self.released[:4]

    @property
    def month(self) -> str:
        """The month of the version, such as "November 2026"."""
        return f"{MONTHS[int(self.released[5:7]) - 1]} {self.year}"


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the citations and the licenses to the pages."""
    app.add_config_value("lnbook_citation", "", "html")  # if it changes, write all pages again
    app.connect("config-inited", _remember)
    app.connect("html-page-context", _add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def read(path: Path) -> Course:
    """Read CITATION.cff."""
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    names = " and ".join(author["name"] for author in given["authors"])
    return Course(given["title"], names, str(given["version"]), str(given["date-released"]))


def sentence(course: Course, title: str, url: str) -> str:
    """A citation as a sentence."""
    # The first page has the course's own title.
    what = [title] if title == course.title else [title, f"In {course.title}"]
    said = [course.author, *what, f"Version {course.version}, {course.month}"]
    return " ".join([*map(_ended, said), url]).rstrip()


def _ended(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def bibtex(course: Course, name: str, title: str, url: str) -> str:
    """A citation as a BibTeX entry."""
    whole = title == course.title
    key = (
        "layernormalization"
        + course.year
        + ("" if whole else re.sub(r"[^a-z]", "", name.rpartition("/")[2]))
    )
    fields = {"author": f"{{{course.author}}}", "title": f"{{{_escaped(title)}}}"}
    if not whole:
        fields["booktitle"] = f"{{{_escaped(course.title)}}}"
    fields |= {"year": course.year, "note": f"Version {course.version}"}
    if url:
        fields["url"] = url
    lines = [f"  {field} = {{{value}}}," for field, value in fields.items()]
    return "\n".join([f"@{'misc' if whole else 'incollection'}{{{key},", *lines, "}"])


def _escaped(text: str) -> str:
    return re.sub(r"([&%$#_{}])", r"\\\1", text)


def _remember(app: Sphinx, config: Config) -> None:
    path = Path(app.srcdir).parent / FILE
    cited = path.read_text(encoding="utf-8") if path.exists() else ""
    config.lnbook_citation = f"{address(os.environ)} {cited}"


def _add(
    app: Sphinx, page: str, _template: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    path = Path(app.srcdir).parent / FILE
    if doctree is None or not path.exists():
        return
    course, base = read(path), app.config.html_baseurl
    repository = address(os.environ)
    url = f"{base}{page}.html" if base else repository or ""
    title = app.env.titles[page].astext()
    context["body"] = figure_license.in_caption(context["body"])
    context["cite"] = {
        "sentence": sentence(course, title, url),
        "bibtex": bibtex(course, page, title, url),
        "contributors": contributors(repository),
        "license": figure_license,
    }
