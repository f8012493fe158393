"""The printed book: all pages joined into one, and the faults that the PDF check finds."""

from collections.abc import Callable
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from bs4 import BeautifulSoup

from bookbuild.book import Book
from bookbuild.checks.check_pdf import bookmarks, page_of, pdf_problems
from bookbuild.errors import BookError
from bookbuild.pdf.build import print_page
from bookbuild.pdf.chromium import find_chromium, open_page
from bookbuild.pdf.print_page import WEB, Entry, PrintedBook, printed_book
from bookbuild.site.offered import PDF_NAME
from tests.book.rich_chapter import add_rich_chapter
from tests.book.small_book import SmallBook

pytestmark = pytest.mark.xdist_group("small book")
LONG = "A heading of so many words that it takes two lines, on paper as on the screen of a phone"
WIDE = "$$ " + " + ".join(f"x_{{{number}}}" for number in range(60)) + " $$"


@pytest.fixture(scope="module")
def site(built: Callable[[], SmallBook]) -> SmallBook:
    """A small book with its PDF, and a formula and a line of code that are too wide."""
    small = built()
    add_rich_chapter(small)
    text = small.chapter.read_text()
    text = text.replace(
        "The end.",
        f"{WIDE}\n\n```python\n{'wide = ' * 30}1\n```\n\n## {LONG}\n\nThe end.",
    )
    small.chapter.write_text(text)
    done = small.run("pdf")
    assert done.returncode == 0, done.stdout + done.stderr
    return small


@pytest.fixture
def document(site: SmallBook) -> pypdfium2.PdfDocument:
    return pypdfium2.PdfDocument(site.book.html / PDF_NAME)


def text_of(document: pypdfium2.PdfDocument, number: int) -> str:
    return document[number - 1].get_textpage().get_text_bounded()


def test_the_site_offers_its_pdf(site: SmallBook) -> None:
    page = BeautifulSoup((site.book.html / "index.html").read_text(), "html.parser")
    assert page.select_one(f".ln-downloads a[href='{PDF_NAME}']")
    done = site.run("pdf")
    assert done.stdout.startswith("Nothing has changed since the last build")


def test_bookmarks_are_parts_chapters_and_sections(document: pypdfium2.PdfDocument) -> None:
    assert bookmarks(document) == [
        (0, "Contents"),
        (0, "A small book"),
        (0, "The part"),
        (1, "1. A rich chapter"),
        (2, "1.1. Text and formulas"),
        (2, "1.2. Next section"),
        (2, f"1.3. {LONG}"),
        (1, "2. The second"),
        (2, "2.1. Text and formulas"),
        (2, "2.2. Next section"),
        (0, "The rest"),
        (1, "Works"),
    ]


def test_what_needs_a_script_is_not_printed(site: SmallBook, tmp_path: Path) -> None:
    page = site.book.html / "part" / "chapter.html"
    text = page.read_text()
    page.write_text(
        text.replace("The end.", '<form class="ln-scripted-only">A form</form>The end.')
    )
    printed = printed_book(site.book, "T", "A", tmp_path).html
    page.write_text(text)
    assert "The end." in printed
    assert "A form" not in printed


def test_contents_tell_the_pages(document: pypdfium2.PdfDocument) -> None:
    number = page_of(document, "part-second")
    assert number is not None
    lines = " ".join(text_of(document, 2).split())
    assert f"2. The second {number} 2.1." in lines
    assert text_of(document, number).split()[:4] == [str(number), "2.", "The", "second"]


def test_links_between_chapters_stay_in_the_pdf(
    site: SmallBook, document: pypdfium2.PdfDocument
) -> None:
    source = (site.book.build / "pdf" / "book.html").read_text()
    assert 'href="#part-second..next-section"' in source
    # the section comes after its chapter's title: on the same page or on the next one
    chapter, section = (
        page_of(document, name) for name in ("part-second", "part-second..next-section")
    )
    assert chapter is not None
    assert section is not None
    assert chapter <= section


def test_solutions_are_open_and_drawing_code_is_left_out(document: pypdfium2.PdfDocument) -> None:
    text = "\n".join(text_of(document, number + 1) for number in range(len(document)))
    for expected in ("Like this:", "Because.", "Use +.", "Fig. 1.1 A rising line."):
        assert expected in text
    for absent in ("M0 40L40 0", "Click to show", "I have read this", "minutes to read"):
        assert absent not in text


def test_all_fonts_are_embedded(document: pypdfium2.PdfDocument) -> None:
    seen = 0
    for number in range(len(document)):
        page = document[number]
        for thing in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_TEXT]):
            assert pdfium.FPDFFont_GetIsEmbedded(pdfium.FPDFTextObj_GetFont(thing.raw)) == 1
            seen += 1
    assert seen > 100


def test_a_figure_is_printed_without_its_dark_twin(site: SmallBook, tmp_path: Path) -> None:
    chapter = BeautifulSoup((site.book.html / "part" / "chapter.html").read_text(), "html.parser")
    assert chapter.select("img.ln-light")
    assert chapter.select("img.ln-dark")
    page = BeautifulSoup(printed_book(site.book, "T", "A", tmp_path).html, "html.parser")
    assert page.select("img.ln-light")
    assert not page.select("img.ln-dark")


def test_faults_are_found(tmp_path: Path) -> None:
    """The page links to a file, and the contents have one entry too many."""
    source, path = tmp_path / "bad.html", tmp_path / "bad.pdf"
    style = "<style>@page { size: A4; margin: 22mm }</style>"
    source.write_text(
        f"{style}<h1 id='a'>A</h1><a href='#a'>up</a>"
        "<a href='other.html'>a file</a><a href='https://example.org'>a host</a>"
    )
    with open_page(source) as page:
        print_page(page, path)
    found = pdf_problems(path, PrintedBook("", (Entry("A", "a", 0), Entry("B", "b", 1))))
    assert len(found) == 3, found
    assert "has no bookmark 'B' at depth 1" in found[0]
    assert "'B' is on page None" in found[1]
    assert any("a link leads to file:" in problem for problem in found)


def test_what_cannot_be_made_to_fit_is_told(tmp_path: Path) -> None:
    source = tmp_path / "wide.html"
    wide = f"<table><tr><td style='white-space: nowrap'>{'wide ' * 90}</td></tr></table>"
    source.write_text(
        "<!DOCTYPE html><body style='width: 300px; margin: 30px'>"
        f"<article id='a'>{wide}<img src='gone.svg'></article>"
        "<article id='b'><p style='margin-left: -9px'>left</p><p>right</p></article></body>"
    )
    with open_page(source) as page:
        found = page.evaluate((WEB / "print.js").read_text())
    assert found == [
        "an image cannot be shown: gone.svg",
        f"a: too wide for the page: {'wide ' * 12}",
        "b: runs over the left margin: left",
    ]


def test_without_chromium_the_command_says_what_to_install(
    small: SmallBook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    done = small.run("pdf")
    assert done.returncode == 1
    assert (
        done.stderr
        == "error: CHROMIUM names 'no-such-browser', which is not a program on this machine\n"
    )
    monkeypatch.delenv("CHROMIUM")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(BookError, match="which is not installed: install it"):
        find_chromium()


def test_what_chromium_refuses_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "empty.html"
    source.touch()
    told = "^Chromium: Page.evaluate: Error: no such thing$"
    with pytest.raises(BookError, match=told), open_page(source) as page:
        page.evaluate("() => { throw new Error('no such thing') }")
    monkeypatch.setenv("CHROMIUM", "false")  # a program that exits immediately
    with pytest.raises(BookError, match="^Chromium: BrowserType.launch: .*$"), open_page(source):
        pass


def test_a_page_that_was_not_built_is_told(small: SmallBook, tmp_path: Path) -> None:
    with pytest.raises(BookError, match=r"_build/html/index.html: the page is missing"):
        printed_book(Book(small.book.root), "T", "A", tmp_path)
