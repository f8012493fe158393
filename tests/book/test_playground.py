"""The playground's directive, its messages, and its pictures in notebooks."""

import base64
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import docutils_namespace

from bookbuild.notebooks.markdown_cells import PageWriter
from bookbuild.sphinx.playground import KINDS, PlaygroundDrawing, draw, standalone

SCRIPTS = Path(__file__).resolve().parents[2] / "book" / "_playground"
ALT = "Five bar charts, one below the other, of a row of three features and its gradient."
FIGURE = """\
Title
=====

.. playground:: {kind}
   :name: here
   :alt: {alt}
   {more}

   {caption}
"""


def build(folder: Path, **parts: str) -> tuple[BeautifulSoup, str]:
    """Build a page with a figure and one without; return the first page and the warnings."""
    pages = folder / "pages"
    shutil.copytree(SCRIPTS, pages / "_playground", dirs_exist_ok=True)
    values = {"kind": "norm", "alt": ALT, "caption": "A *caption*.", "more": ""} | parts
    texts = {"index": "Book\n====\n\n.. toctree::\n\n   page\n", "page": FIGURE.format(**values)}
    for name, text in texts.items():
        path = pages / f"{name}.rst"
        if not path.exists() or path.read_text() != text:  # or Sphinx would read the page again
            path.write_text(text)
    warnings = folder / "warnings.txt"
    out = folder / "html"
    with warnings.open("w") as stream, docutils_namespace():
        configuration = {"extensions": ["bookbuild.sphinx.playground"], "numfig": True}
        trees = str(out / "trees")
        app = Sphinx(
            str(pages), None, str(out), trees, "html", configuration, status=None, warning=stream
        )
        app.build()
    return BeautifulSoup((out / "page.html").read_text(), "html.parser"), warnings.read_text()


def test_a_figure_is_complete_without_scripts(tmp_path: Path) -> None:
    soup, warnings = build(tmp_path)
    assert warnings == ""
    figure = soup.select_one("figure#here")
    assert figure is not None
    drawing = figure.select_one("svg[role=img]")
    assert drawing is not None
    assert drawing["aria-label"] == ALT
    assert figure.select_one("figcaption em").get_text() == "caption"
    assert figure.select_one("fieldset[disabled]")
    scripts = [Path(tag["src"].split("?")[0]) for tag in soup.select("script[src*=playground]")]
    assert [path.name for path in scripts] == [
        "norm-math.js",
        "drawing.js",
        "norm.js",
        "playground.js",
    ]
    assert all((tmp_path / "html" / path).exists() for path in scripts)
    assert all(tag.has_attr("defer") for tag in soup.select("script[src*=playground]"))
    other = (tmp_path / "html" / "index.html").read_text()
    assert "playground/" not in other


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"kind": "cube"}, f"expected one of {', '.join(KINDS)}, but got 'cube'"),
        ({"alt": "A figure."}, "in 60 or more characters, but got"),
        ({"caption": ""}, "expected a caption"),
        ({"more": ":start: {gradient}"}, ":start: is not JSON"),
        ({"more": ":start: [1]"}, "expected :start: to be a JSON object"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, parts: dict[str, str], message: str) -> None:
    _, warnings = build(tmp_path, **parts)
    assert message in warnings


def test_a_first_state_can_be_given(tmp_path: Path) -> None:
    soup, _ = build(tmp_path, more=':start: {"gradient": false}')
    assert "∂L/∂x" not in soup.select_one("svg").get_text()


def test_a_page_follows_its_scripts(tmp_path: Path) -> None:
    build(tmp_path)
    scripts = tmp_path / "changed"
    shutil.copytree(SCRIPTS, scripts)
    path = tmp_path / "pages" / "_playground" / "norm.js"
    original = path.read_text()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.book.test_playground.SCRIPTS", scripts)
        (scripts / "norm.js").write_text(original.replace('"the output"', '"what comes out"'))
        soup, _ = build(tmp_path)
    assert "what comes out" in soup.select_one("svg").get_text()


def test_a_figure_can_be_added_when_a_script_changes(tmp_path: Path) -> None:
    build(tmp_path)
    scripts = tmp_path / "changed"
    shutil.copytree(SCRIPTS, scripts)
    (scripts / "norm.js").write_text((scripts / "norm.js").read_text() + "\n")
    second = f".. playground:: batch\n   :alt: {ALT}\n   :name: new\n\n   Another figure.\n"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.book.test_playground.SCRIPTS", scripts)
        soup, warnings = build(tmp_path, caption=f"A caption.\n\nSee :numref:`new`.\n\n{second}")
    assert warnings == ""
    assert "See Fig. 2." in soup.get_text()


def test_a_page_follows_its_style_sheet(tmp_path: Path) -> None:
    build(tmp_path)
    scripts = tmp_path / "changed"
    shutil.copytree(SCRIPTS, scripts)
    (scripts / "playground.css").write_text(".ln-play { color: red; }")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.book.test_playground.SCRIPTS", scripts)
        build(tmp_path)
    shown = tmp_path / "html/_static/playground/playground.css"
    assert shown.read_text() == ".ln-play { color: red; }"


def test_a_script_that_fails_stops_the_build(tmp_path: Path) -> None:
    folder = tmp_path / "scripts"
    shutil.copytree(SCRIPTS, folder)
    (folder / "norm.js").write_text("oops(")
    with pytest.raises(ExtensionError, match="playground norm: the drawing failed"):
        draw(folder, "norm", {})


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawing_can_stand_alone(kind: str) -> None:
    drawn = draw(SCRIPTS, kind, {"alt": 'A "quoted" text & a <tag>'})
    picture = ElementTree.fromstring(standalone(drawn["drawing"]))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert picture.get("aria-label") == 'A "quoted" text & a <tag>'
    assert not [e for e in picture.iter() if e.get("tabindex") or e.get("role") == "slider"]


def test_a_notebook_gets_the_picture() -> None:
    drawing = PlaygroundDrawing(kind="norm", alt="A [row].", picture="<svg/>", page="")
    writer = PageWriter(None, "page", lambda address: address)
    data = base64.b64encode(b"<svg/>").decode()
    assert list(writer.blocks(drawing)) == [f"![A \\[row\\].](data:image/svg+xml;base64,{data})"]
