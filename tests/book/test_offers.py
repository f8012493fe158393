"""What a built site offers: chapter headers, notebooks for plain Jupyter, and the PDF."""

import json
import zipfile
from collections.abc import Callable, Iterable
from types import SimpleNamespace

import nbformat
import pytest
from bs4 import BeautifulSoup, Tag
from docutils import nodes
from jinja2 import Environment, FileSystemLoader
from nbclient import NotebookClient

from bookbuild.book import Book
from bookbuild.checks.check_notebooks import problems_in
from bookbuild.notebooks.download import how_to_install
from bookbuild.notebooks.markdown_cells import PageWriter, UnknownNodeError
from bookbuild.outputs.cache import read_notebook
from bookbuild.site.reading_time import ReadingTime
from bookbuild.sphinx.repository import page_links
from tests.book.rich_chapter import add_rich_chapter
from tests.book.small_book import SmallBook

REPOSITORY = "https://github.com/owner/name"


@pytest.fixture(scope="module")
def site(built: Callable[[], SmallBook]) -> SmallBook:
    """A small book with two rich chapters, built the way a public repository would build it."""
    small = built()
    add_rich_chapter(small)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BOOK_REPOSITORY", REPOSITORY)
        done = small.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    return small


def soup(small: SmallBook, page: str) -> BeautifulSoup:
    return BeautifulSoup((small.book.html / f"{page}.html").read_text(), "html.parser")


def notebook(small: SmallBook, page: str = "part/chapter") -> nbformat.NotebookNode:
    found = read_notebook(small.book.html / "_sources" / f"{page}.ipynb")
    assert found is not None
    return found


def text(small: SmallBook) -> str:
    cells = notebook(small).cells
    return "\n\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_a_box_to_go_deeper_holds_code_and_can_be_linked_to(site: SmallBook) -> None:
    page = soup(site, "part/chapter")
    box = page.select_one("details.ln-deeper")
    assert box is not None
    assert box.summary.get_text() == "Going deeper: Twice the value"
    assert "print" in box.select_one(".cell_input").get_text()
    assert "Add 1" not in box.get_text()
    assert page.select(f"a[href='#{box['id']}']")
    assert "### Going deeper: Twice the *value*" in text(site)


def test_head_of_a_chapter(site: SmallBook) -> None:
    page = soup(site, "part/chapter")
    head = page.select_one("h1 + .ln-chapter-head")
    assert head is not None
    told = " ".join(head.select_one(".ln-chapter-time").get_text().split())
    assert told == "Essential 5 min to read 15 min for 2 exercises"
    links = {link.get_text(): link["href"] for link in head.select("a")}
    assert links == {
        "Notebook of this chapter (.ipynb)": "../_sources/part/chapter.ipynb",
        "Run on Binder (opens mybinder.org)": (
            "https://mybinder.org/v2/gh/owner/name/main?urlpath=lab/tree/book/part/chapter.md"
        ),
        "Edit on GitHub": f"{REPOSITORY}/edit/main/book/part/chapter.md",
        "Report an error on GitHub": f"{REPOSITORY}/issues/new?title=A%20rich%20chapter%3A%20",
    }
    boxes = page.select("input[data-chapter='part/chapter']")
    assert len(boxes) == 2, "one at the top and one at the bottom"
    assert all(box.find_parent("label") for box in boxes)
    assert page.select("script[defer][src*='reading-marks.js']")


def test_head_of_a_chapter_that_builds_on_another(site: SmallBook) -> None:
    told = soup(site, "part/second").select_one(".ln-chapter-time")
    assert told is not None
    assert " ".join(told.get_text().split()) == (
        "Further 5 min to read 15 min for 2 exercises Builds on 1"
    )
    link = told.a
    assert link is not None
    assert (link["href"], link["title"]) == ("chapter.html", "A rich chapter")


def test_pages_that_are_no_chapters_have_no_head(site: SmallBook) -> None:
    assert not soup(site, "bibliography").select("[data-chapter], .ln-chapter-head")


def test_progress_lists_the_chapters_in_order(site: SmallBook) -> None:
    links = soup(site, "index").select("[data-reading-progress] li a")
    assert [(link.get_text(), link["href"]) for link in links] == [
        ("A rich chapter", "part/chapter.html"),
        ("The second", "part/second.html"),
    ]


def texts(tags: Iterable[Tag]) -> list[str]:
    return [" ".join(tag.get_text().split()) for tag in tags]


def test_first_page_leads_to_the_first_chapter(site: SmallBook) -> None:
    links = soup(site, "index").select(".ln-start a")
    assert texts(links) == ["Start with “A rich chapter”"]
    assert links[0]["href"] == "part/chapter.html"


def test_tracks_have_computed_minutes(site: SmallBook) -> None:
    assert texts(soup(site, "index").select(".ln-tracks > li")) == [
        "An hour 5 minutes What it is. A rich chapter A small book "
        "The 2 exercises take 15 minutes more.",
        "A day 5 minutes What is essential. A rich chapter The 2 exercises take 15 minutes more.",
        "Everything 5 minutes All there is. A rich chapter The second "
        "The 4 exercises take 30 minutes more.",
    ]


def test_map_marks_each_chapter(site: SmallBook) -> None:
    index = soup(site, "index")
    assert texts(index.select(".ln-map-caption")) == ["The part"]
    assert texts(index.select(".ln-map li")) == [
        "1 A rich chapter essential, 5 min",
        "2 The second further, 5 min, after 1",
    ]
    assert texts(index.select(".ln-map .ln-essential a")) == ["A rich chapter"]


def test_notebook_reads_well_in_plain_jupyter(site: SmallBook) -> None:
    assert list(problems_in(notebook(site))) == []
    shown = text(site)
    for expected in (
        "# 1. A rich chapter\n\n> This notebook",
        f"`pip install git+{REPOSITORY}`",
        "The mean of \\[Someone and Other, 2016\\]",
        "[the second](second.ipynb)",
        "back to the index",
        "## 1.1. Text and *formulas*",
        "The number is 1.2, the others 41 and 3.",
        "Equation (1.1) uses $|x|$; Fig. 1.1 and Table 1.1 follow.",
        "$$\n\\|x\\| = \\sqrt{x^2}\n\\tag{1.1}\n$$",
        "**Table 1.1.** Some words",
        "| $\\vert x\\vert$ or `a\\|b` | size, as in $\\Vert x\\Vert$ |",
        "- first, with\n\n  $$ y = x $$\n- second",
        "> A quote.",
        "**Fig. 1.1.** A rising line.",
        "A drawing of one line that rises from left to right.",
        "> **Watch out**\n>\n> Read **slowly**.",
        "### Exercise 1.1 (Add)",
        "<summary>Hint</summary>\n\nUse `+`.",
        "#### Solution to Exercise 1.1 (Add)",
        "<summary>Solution to Exercise 1.2 (Think)</summary>\n\nBecause.",
        "## Works cited\n\n- Ada Someone and Ben Other. A work. 2016. URL: "
        "<https://example.org/a_work>.",
        "a\\_b \\* c\\_d",
    ):
        assert expected in shown, f"{expected!r} in:\n{shown}"


def test_notebook_keeps_code_and_outputs(site: SmallBook) -> None:
    code = [cell for cell in notebook(site).cells if cell.cell_type == "code"]
    assert "glue" not in "".join(cell.source for cell in code)
    assert code[1].source == "used_later = value + 1", "keeps only what later cells need"
    assert code[1].metadata == {"jupyter": {"source_hidden": True}}
    assert code[-1].outputs[0].text == "ours: 43\n"
    headings = [c for c in notebook(site).cells if c.source.startswith("#### Solution")]
    assert headings[0].metadata == {"jp-MarkdownHeadingCollapsed": True}


def test_notebook_runs_in_a_plain_kernel(site: SmallBook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(site.book.root))  # the small book's own lnbook
    plain = notebook(site)
    expected = [cell.outputs for cell in plain.cells if cell.cell_type == "code"]
    NotebookClient(plain, kernel_name="python3").execute()
    found = [cell.outputs for cell in plain.cells if cell.cell_type == "code"]
    assert [o[0].get("text") for o in found if o] == [o[0].get("text") for o in expected if o]


def test_all_notebooks_in_one_archive(site: SmallBook) -> None:
    link = soup(site, "index").select_one(".ln-downloads a")
    assert link["href"] == "_sources/notebooks.zip"
    with zipfile.ZipFile(site.book.html / link["href"]) as archive:
        names = archive.namelist()
        assert json.loads(archive.read(names[0]))["nbformat"] == 4
    assert names == [f"layer-normalization/part/{name}.ipynb" for name in ("chapter", "second")]


def test_without_a_repository_its_links_are_left_out(book: Book) -> None:
    templates = Environment(loader=FileSystemLoader(book.source / "_templates"), autoescape=True)
    values = {"name": "a", "time": ReadingTime(10.0, 1), "notebook": "a.ipynb"}
    head = BeautifulSoup(
        templates.get_template("chapter-head.html").render(values, repository=None), "html.parser"
    )
    assert [link.get_text() for link in head.select("a")] == ["Notebook of this chapter (.ipynb)"]
    assert head.select_one(".ln-chapter-time").get_text().split()[-2:] == ["1", "exercise"]
    note = how_to_install(book, nbformat.v4.new_notebook(), None, "")
    assert "`pip install .` in the folder of the course" in note


def writer() -> PageWriter:
    return PageWriter(SimpleNamespace(toc_fignumbers={}), "a", lambda address: address)


def test_a_text_without_a_form_in_markdown_is_an_error() -> None:
    with pytest.raises(UnknownNodeError, match="can't show 'sidebar'"):
        list(writer().blocks(nodes.sidebar()))
    with pytest.raises(UnknownNodeError, match="can't show 'image'"):
        writer().inline([nodes.image()])


def test_what_cannot_be_written_in_markdown_is_an_error() -> None:
    row = nodes.row("", nodes.entry("", morecols=1))
    group = nodes.tgroup("", nodes.colspec(), nodes.tbody("", row))
    with pytest.raises(UnknownNodeError, match="merged cells"):
        list(writer().blocks(nodes.table("", group)))
    cell = nodes.container(nb_element="cell_code", cell_index=7)
    with pytest.raises(UnknownNodeError, match="code cell 7 is inside a list"):
        list(writer().blocks(nodes.bullet_list("", nodes.list_item("", cell))))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("A {term}`row`.", "an unprocessed role: A {term}`row`"),
        ("```{math}\nx\n```", "an unprocessed directive: {math}"),
        (":::{tip}\nx\n:::", "an unprocessed directive: :::{tip}"),
    ],
)
def test_raw_text_in_a_notebook_is_found(source: str, expected: str) -> None:
    cells = [nbformat.v4.new_markdown_cell(f"# Title\n\n{source}\n\nA set $x_{{ij}}$ and $y_i$.")]
    found = list(problems_in(nbformat.v4.new_notebook(cells=cells)))
    assert len(found) == 1
    assert expected in found[0]


@pytest.mark.parametrize("address", [None, "", "https://example.org/a/b", "https://github.com/a"])
def test_no_links_to_a_repository_that_is_not_known(address: str | None) -> None:
    assert page_links(address, "book/a.md", "A") is None


def test_links_to_gitlab() -> None:
    links = page_links("https://gitlab.com/group/sub/name", "book/a.md", "A & B")
    assert links is not None
    assert links["edit"] == "https://gitlab.com/group/sub/name/-/edit/main/book/a.md"
    assert links["binder"].startswith("https://mybinder.org/v2/gl/group%2Fsub%2Fname/main?")
    assert links["report"].endswith("/-/issues/new?issue[title]=A%20%26%20B%3A%20")
