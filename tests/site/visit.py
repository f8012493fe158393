"""Opens a page in the browser and notes what a reader would not see: requests and errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, Request

DESKTOP, PHONE = 1280, 360
SCROLL = """async () => {
    dispatchEvent(new Event("scroll"));  // a short page has nothing to scroll
    for (let i = 0; i < 400 && document.documentElement.dataset.laidOut === undefined; i++)
        await new Promise((resolve) => setTimeout(resolve, 25));
    for (let y = 0; y < document.body.scrollHeight; y += 500) {
        scrollTo(0, y);
        await new Promise((resolve) => setTimeout(resolve, 25));
    }
    for (const image of document.querySelectorAll("article img")) {
        if (!image.checkVisibility() || image.complete) continue;
        image.scrollIntoView();
        await image.decode().catch(() => {});  // a failure is found afterward
    }
    scrollTo(0, 0);
}"""
# Shifts while a page loads, as Lighthouse counts them: not those that follow an input.
WATCH_SHIFTS = """
    window.layoutShift = 0;
    new PerformanceObserver((list) => {
        for (const entry of list.getEntries())
            if (!entry.hadRecentInput) window.layoutShift += entry.value;
    }).observe({type: "layout-shift", buffered: true});
"""


@dataclass
class Visit:
    """A page that is open, and what went on while it loaded."""

    page: Page
    base: str
    foreign: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)

    def read_through(self) -> None:
        """Scroll to the end and back, so that all that loads late is loaded."""
        self.page.evaluate(SCROLL)
        self.page.wait_for_load_state("networkidle")

    def faults(self) -> list[str]:
        """Whatever went wrong so far, a line each."""
        return [
            *(f"asks another host: {url}" for url in self.foreign),
            *(f"not loaded: {url}" for url in self.failed),
            *(f"error in the console: {text}" for text in self.errors),
        ]

    def note_request(self, request: Request) -> None:
        if request.url.startswith(("data:", "blob:")):
            return
        if request.url.startswith(self.base):
            self.loaded.add(request.url.removeprefix(self.base).partition("?")[0].partition("#")[0])
        else:
            self.foreign.append(request.url)


@contextmanager
def visit(
    browser: Browser,
    base: str,
    path: str,
    *,
    width: int = DESKTOP,
    mode: str = "light",
    script: bool = True,
    reduced_motion: bool = False,
) -> Iterator[Visit]:
    """Open a page of the site in a fresh context, as a reader who comes for the first time."""
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if mode == "dark" else "light",
        java_script_enabled=script,
        reduced_motion="reduce" if reduced_motion else "no-preference",
        is_mobile=width < 500,
        has_touch=width < 500,
        permissions=["clipboard-read", "clipboard-write"] if base.startswith("http") else None,
    )
    try:
        page = context.new_page()
        seen = Visit(page, base)
        page.on("request", seen.note_request)
        page.on("requestfailed", lambda request: seen.failed.append(request.url))
        page.on(
            "response",
            lambda answer: seen.failed.append(answer.url) if answer.status >= 400 else None,
        )
        page.on(
            "console",
            lambda message: seen.errors.append(message.text) if message.type == "error" else None,
        )
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.add_init_script(WATCH_SHIFTS)
        page.goto(base + path, wait_until="load")
        yield seen
    finally:
        context.close()
