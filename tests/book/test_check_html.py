"""The check for built pages must find each fault, and pass a page without any."""

from pathlib import Path

import pytest

from bookbuild.checks import check_html
from bookbuild.checks.check_html import problems_of

SOUND = """<!doctype html><html><head><title>A page</title>
<meta name="description" content="A page that has everything a page needs, and nothing else.">
<link rel="canonical" href="https://example.org/">
<link rel="stylesheet" href="_static/a.css"></head><body><article>
<p id="here">Text, <a href="#here">a place</a>, <a href="other.html#there">another</a>,
<a href="https://example.org/">a site</a>, <code>{term}`raw`</code>.</p>
<img src="_static/a.svg" alt="A line that rises from left to right."></article></body></html>"""


@pytest.fixture
def html(tmp_path: Path) -> Path:
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "a.css").write_text("")
    (tmp_path / "_static" / "a.svg").write_text("<svg/>")
    (tmp_path / "other.html").write_text(
        "<head><title>Another</title><meta name='description' content='Another sound page, to "
        "which the first page has a link.'></head><article><p id='there'>Text</p></article>"
    )
    (tmp_path / "index.html").write_text(SOUND)
    return tmp_path


def test_a_sound_page(html: Path) -> None:
    assert problems_of(html) == []


def test_no_page_at_all(tmp_path: Path) -> None:
    assert "contains no pages" in problems_of(tmp_path)[0]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("Text,", "<span class='problematic'>x</span>", "an unresolved reference"),
        ("Text,", "<aside class='system-message'>x</aside>", "a message from the parser"),
        ("Text,", "<span class='katex-error'>x</span>", "a formula with an error"),
        (
            "Text,",
            "<div class='cell_output'><div class='stderr'>x</div></div>",
            "text on stderr",
        ),
        ("Text,", "Text, {term}`raw`", "an unprocessed role"),
        ("Text,", "<div class='admonition dropdown'>x</div>", "a folded box without a title"),
        ("<title>A page</title>", "", "has no title"),
        ("A page that has everything a page needs, and nothing else.", "Short.", "of 6 characters"),
        ("and nothing else.", "and nothing else." + 120 * "x", "description of 178 characters"),
        ('href="#here"', 'href="#gone"', "an id that does not exist: #gone"),
        ("other.html#there", "other.html#gone", "an id that does not exist: other.html#gone"),
        ("other.html#there", "gone.html", "a file that does not exist: gone.html"),
        ('src="_static/a.svg"', 'src="_static/gone.svg"', "a file that does not exist"),
        ("_static/a.css", "https://example.org/a.css", "loads from another host"),
        ("_static/a.css", "//example.org/a.css", "loads from another host"),
    ],
)
def test_a_fault_is_found(html: Path, old: str, new: str, expected: str) -> None:
    assert old in SOUND
    (html / "index.html").write_text(SOUND.replace(old, new))
    found = problems_of(html)
    assert len(found) == 1, found
    assert found[0].startswith("index.html: ")
    assert expected in found[0]


def test_two_pages_with_one_description(html: Path) -> None:
    other = html / "other.html"
    description = "A page that has everything a page needs, and nothing else."
    other.write_text(
        f"<title>x</title><meta name='description' content='{description}'>"
        "<article><p id='there'></p></article>"
    )
    assert problems_of(html) == ["other.html: has the same description as index.html"]


def test_a_page_that_stays_the_same_is_read_once(
    html: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = tmp_path / "checked.json", html / "other.html"
    (html / "index.html").write_text(SOUND.replace("<title>A page</title>", ""))
    assert problems_of(html, memory) == ["index.html: has no title"]
    other.write_text(other.read_text().replace("id='there'", "id='elsewhere'"))
    read: list[str] = []
    look_at = check_html._look_at
    monkeypatch.setattr(check_html, "_look_at", lambda text: read.append(text) or look_at(text))
    broken = "index.html: links to an id that does not exist: other.html#there"
    assert problems_of(html, memory) == ["index.html: has no title", broken]
    assert read == [other.read_text()]
