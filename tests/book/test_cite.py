"""Citations, figure licenses, and what preview cards show."""

import xml.etree.ElementTree as ET
from pathlib import Path

from bookbuild.book import Book
from bookbuild.site import license as figure_license
from bookbuild.site.previews import snippets
from bookbuild.sphinx import cite, symbols
from bookbuild.sphinx.repository import contributors

COURSE = cite.Course("A course", "The contributors", "1.2", "2026-11-20")
URL = "https://example.org/part/page.html"


def test_a_citation(book: Book) -> None:
    assert cite.sentence(COURSE, "Why?", URL) == (
        f"The contributors. Why? In A course. Version 1.2, November 2026. {URL}"
    )
    assert cite.sentence(COURSE, "A course", "") == (
        "The contributors. A course. Version 1.2, November 2026."
    )
    own = cite.read(book.root / "CITATION.cff")
    assert own.author == figure_license.CREATOR


def test_an_entry_for_bibtex() -> None:
    assert cite.bibtex(COURSE, "part/the-page", "Costs & 1 %", URL) == (
        "@incollection{layernormalization2026thepage,\n"
        "  author = {{The contributors}},\n  title = {{Costs \\& 1 \\%}},\n"
        "  booktitle = {{A course}},\n  year = {2026},\n  note = {Version 1.2},\n"
        f"  url = {{{URL}}},\n}}"
    )
    assert cite.bibtex(COURSE, "index", "A course", "").startswith("@misc{layernormalization2026,")


def test_the_contributors_of_a_repository() -> None:
    assert contributors("https://github.com/a/b") == "https://github.com/a/b/graphs/contributors"
    assert contributors("https://gitlab.com/a/b") == "https://gitlab.com/a/b/-/graphs/main"
    for unknown in (None, "", "https://example.org/a/b", "https://github.com/a"):
        assert contributors(unknown) is None


def test_a_figure_carries_its_license() -> None:
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="9"><path d="M 0 0"/></svg>'
    root = ET.fromstring(figure_license.in_file(svg))
    (given,) = root.iter("{http://creativecommons.org/ns#}license")
    assert given.get("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}resource") == (
        figure_license.ADDRESS
    )
    assert root[-1].get("d") == "M 0 0"
    body = figure_license.in_caption("<figure><figcaption>A.</figcaption></figure>")
    assert body.index("A.") < body.index(figure_license.NAME) < body.index("</figcaption>")


GLOSSARY = """<article><dl class="glossary"><dt id="term-a">a</dt><dt id="term-b">b</dt>
<dd><p>Both, see <a href="#term-a">a</a>.</p></dd></dl>
<table><tr id="symbol-mu"><td><annotation>\\mu</annotation>m</td><td></td><td>the mean</td></tr>
<tr id="symbol-other-mu"><td><annotation>\\mu</annotation></td><td>a rate</td></tr></table>
</article>"""
CHAPTER = """<article><a class="reference" href="../look.html#term-a">a</a>
<a class="reference" href="../look.html#symbol-mu">m</a><a class="reference" href="#fig">Fig.</a>
<a class="reference" href="#section">s</a><a class="reference" href="https://x.org/#term-a">x</a>
<section id="section"></section><figure id="fig"><img src="../_images/a.svg" loading="lazy">
<figcaption>A.<p class="ln-figure-license">CC</p></figcaption></figure></article>"""


def test_what_cards_show(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    (tmp_path / "look.html").write_text(f"<html><body>{GLOSSARY}</body></html>")
    (tmp_path / "part" / "page.html").write_text(f"<html><body>{CHAPTER}</body></html>")
    shown = snippets(tmp_path, ["look", "part/page"])
    assert {page: list(each) for page, each in shown.items()} == {
        "look": ["symbol-mu", "term-a"],
        "part/page": ["fig"],
    }
    kind, term = shown["look"]["term-a"]
    assert kind == "Glossary"
    assert "Both, see" in term
    assert "<a" not in term
    assert "a rate" in shown["look"]["symbol-mu"][1]
    figure = shown["part/page"]["fig"][1]
    assert 'src="_images/a.svg"' in figure
    assert "lazy" not in figure
    assert "CC" not in figure


def test_the_rows_of_symbols_have_different_names() -> None:
    given = [r"\mu", r"\sigma", r"\sigma^2", r"\hat{x}", "x", "X^\\top", "H", "h_t", r"\gamma"]
    assert len({symbols.anchor(latex) for latex in given}) == len(given)
    assert symbols.spelling(r"\varepsilon") == symbols.spelling(r"\epsilon")
    assert symbols.anchor("G") == "symbol-capital-g"
