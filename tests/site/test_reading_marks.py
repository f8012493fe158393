"""The reading marks in a real browser: stored, counted and removed."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from bookbuild.pdf.chromium import open_page
from tests.book.rich_chapter import add_rich_chapter
from tests.book.small_book import SmallBook

pytestmark = pytest.mark.xdist_group("small book")
CLICK = "document.querySelectorAll('input[data-chapter]')[{0}].click()"
CHECKED = "[...document.querySelectorAll('input[data-chapter]')].map(box => box.checked)"
MARKED = (
    "[...document.querySelectorAll('nav.bd-links a')].filter(a => a.querySelector('.ln-mark'))"
    ".map(a => a.textContent.trim().replace(/\\s+/g, ' '))"
)
COUNT = "document.querySelector('[data-reading-progress] .ln-progress-line').innerText"
CLEAR = "document.querySelector('[data-clear]')"


@pytest.fixture(scope="module")
def html(built: Callable[[], SmallBook]) -> Path:
    small = built()
    add_rich_chapter(small)
    done = small.run("book")
    assert done.returncode == 0, done.stdout + done.stderr
    return small.book.html


@pytest.fixture
def chapter(html: Path) -> Iterator[Page]:
    with open_page(html / "part" / "chapter.html") as page:
        yield page


def go(page: Page, html: Path, name: str) -> None:
    page.goto((html / f"{name}.html").as_uri())


def test_marks_are_kept_and_counted(chapter: Page, html: Path) -> None:
    assert chapter.evaluate(CHECKED) == [False, False]
    chapter.evaluate(CLICK.format(1))
    assert chapter.evaluate(CHECKED) == [True, True], "top and bottom agree"
    assert chapter.evaluate(MARKED) == ["1. A rich chapter (read)"]

    go(chapter, html, "part/second")
    # What was just stored may reach the next page a moment after it has opened.
    chapter.wait_for_function(f"{MARKED}.join() === '1. A rich chapter (read)'")
    assert chapter.evaluate(CHECKED) == [False, False]

    go(chapter, html, "index")
    line = " ".join(chapter.evaluate(COUNT).split())
    assert line == "1 of 2 chapters read Continue with The second."
    assert chapter.evaluate("document.querySelector('progress').value") == 1
    on_map = "[...document.querySelectorAll('.ln-map .ln-mark')].map(m => m.parentElement.href)"
    assert [address.rpartition("/")[2] for address in chapter.evaluate(on_map)] == ["chapter.html"]

    chapter.evaluate(f"{CLEAR}.click()")
    assert chapter.evaluate(COUNT).startswith("0 of 2")
    assert chapter.evaluate(MARKED) == []
    chapter.evaluate(f"{CLEAR}.click()")
    assert chapter.evaluate(COUNT).startswith("1 of 2"), "a second click undoes the first"

    go(chapter, html, "part/chapter")
    chapter.evaluate(CLICK.format(0))
    assert chapter.evaluate(CHECKED) == [False, False]
    assert chapter.evaluate(MARKED) == []


def test_continue_goes_on_from_the_last_mark(chapter: Page, html: Path) -> None:
    """The link returns to skipped chapters only if no unread one comes after the last mark."""
    next_one = "document.querySelector('[data-next]').innerText"

    def continued(marks: list[str], chapters: list[str]) -> str:
        go(chapter, html, "index")
        chapter.evaluate(
            """([marks, chapters]) => {
                const list = document.querySelector("[data-reading-progress] ol");
                list.replaceChildren(...chapters.map((name) => {
                    const item = document.createElement("li");
                    const link = document.createElement("a");
                    [link.href, link.textContent] = [`${name}.html`, name];
                    item.append(link);
                    return item;
                }));
                localStorage.setItem("lnbook.read", JSON.stringify(marks));
                dispatchEvent(new StorageEvent("storage", {key: "lnbook.read"}));
            }""",
            [marks, chapters],
        )
        return str(chapter.evaluate(next_one))

    chapters = ["a", "b", "c", "d"]
    assert continued(["b"], chapters) == "Continue with c."
    assert continued(["a", "c"], chapters) == "Continue with d."
    assert continued(["c", "a"], chapters) == "Continue with b."
    assert continued(["a", "b", "d"], chapters) == "Continue with c."
    assert continued(["a", "b", "c", "d"], chapters) == ""


@pytest.mark.parametrize(
    "broken",
    ["throw new DOMException('blocked', 'SecurityError')", "return '{\"a\": 1}'", "return 'x'"],
)
def test_storage_that_fails(chapter: Page, html: Path, broken: str) -> None:
    """If storage is blocked or contains something else, marks last until the page is closed."""
    fails = "throw new DOMException('blocked', 'SecurityError')"
    script = (
        f"Storage.prototype.getItem = function (key) {{ if (key === 'lnbook.read') {broken} }};"
        f"Storage.prototype.setItem = function () {{ {fails} }};"
        "window.errors = []; addEventListener('error', event => errors.push(event.message))"
    )
    chapter.add_init_script(script)
    go(chapter, html, "part/chapter")
    assert chapter.evaluate(CHECKED) == [False, False]
    if "throw" in broken:
        chapter.evaluate(CLICK.format(0))
        assert chapter.evaluate(CHECKED) == [True, True]
    assert chapter.evaluate("errors.filter(text => !text.includes('blocked'))") == []


def test_controls_can_be_reached_and_named(chapter: Page, html: Path) -> None:
    names = chapter.evaluate("[...document.querySelectorAll('input[data-chapter]')].map(b => "
                        "b.labels[0].textContent.trim())")  # fmt: skip
    assert names == ["Read", "I have read this chapter"]
    assert chapter.evaluate("document.querySelector('.ln-read input').tabIndex") == 0
    go(chapter, html, "index")
    assert chapter.evaluate("document.querySelector('progress').getAttribute('aria-label')")


def test_without_scripts_nothing_is_offered_that_needs_them(html: Path) -> None:
    with open_page(html / "part" / "chapter.html", scripts=False) as page:
        seen = "getComputedStyle(document.querySelector('.ln-read')).visibility"
        assert page.evaluate(seen) == "hidden"
        assert page.evaluate("document.querySelector('.ln-chapter-links a').offsetHeight") > 0
