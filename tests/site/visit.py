"""Opens a page in the browser and records what readers don't see: requests and errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from playwright.sync_api import Browser, Page, Request, Route, expect

from tests.site.pages import FIGURES

DESKTOP, PHONE = 1280, 360
MODES = ("light", "dark")
PATIENCE = 120_000  # milliseconds to wait for anything in a browser, for very slow hosts
NEXT_FRAME = "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
# Scrolls by less than a screen at a time, so that everything is on the screen at least once.
SCROLL = f"""async () => {{
    for (let y = 0; y < document.body.scrollHeight; y += 700) {{
        scrollTo(0, y);
        await {NEXT_FRAME};
    }}
    for (const image of document.querySelectorAll("article img")) {{
        if (!image.checkVisibility() || image.complete) continue;
        image.scrollIntoView();
        await image.decode().catch(() => {{}});  // a failure is found afterward
    }}
    scrollTo(0, 0);
}}"""
# Adds up all shifts since the page was opened, and those among them that no input explains, because
# there was none within half a second.
WATCH_SHIFTS = """{
    let all = 0, unexplained = 0;
    const add = (entries) => {
        for (const entry of entries) {
            all += entry.value;
            if (!entry.hadRecentInput) unexplained += entry.value;
        }
    };
    const observer = new PerformanceObserver((list) => add(list.getEntries()));
    observer.observe({type: "layout-shift", buffered: true});
    window.layoutShifts = () => {
        add(observer.takeRecords());
        return [all, unexplained];
    };
}"""
TOO_WIDE = """() => {
    const width = document.documentElement.clientWidth;
    const inside = (element) => {
        for (let box = element.parentElement; box; box = box.parentElement)
            if (["auto", "scroll", "hidden", "clip"].includes(getComputedStyle(box).overflowX))
                return true;
        return false;
    };
    if (document.documentElement.scrollWidth <= width + 1) return [];
    return [...document.querySelectorAll("body *")]
        .filter((element) => element.getBoundingClientRect().right > width + 1 && !inside(element))
        .map((element) => `${element.tagName}.${element.className}`.slice(0, 80));
}"""
# For pages that are laid out: what the style sheet reserved for each section before.
TALLER_THAN_RESERVED = """() => {
    delete document.documentElement.dataset.laidOut;
    const sections = [...document.querySelectorAll(".bd-article section > section")];
    const found = sections.flatMap((section) => {
        const reserved = getComputedStyle(section).containIntrinsicBlockSize; // "auto 60px", "none"
        const height = section.getBoundingClientRect().height;
        return height > parseFloat(reserved.replace("auto ", ""))
            ? [`#${section.id} is ${height} px tall, but has ${reserved}`] : [];
    });
    document.documentElement.dataset.laidOut = "";
    return found;
}"""
LAID_OUT = "document.documentElement.dataset.laidOut !== undefined"
FONTS = "**/*.woff2"
DRAWN = "performance.getEntriesByName('first-contentful-paint').length > 0"
AT_REST = "document.getAnimations().every((one) => one.playState !== 'running')"


def next_frame(page: Page) -> None:
    """Wait until the browser has finished drawing."""
    page.evaluate(f"() => {NEXT_FRAME}")


def layout_shift(page: Page, *, explained: bool = True) -> float:
    """How far the page has moved under the reader so far, as Lighthouse measures it.

    Args:
        page: the page.
        explained: whether what moved right after an input counts, too. Lighthouse leaves it out.
            But Chromium counts emulating a phone's screen as an input, so while a page loads, what
            is left out depends on the host's speed.
    """
    next_frame(page)
    next_frame(page)  # a shift is reported one frame later
    every, unexplained = page.evaluate("layoutShifts()")
    return float(every if explained else unexplained)


def largest_shift(name: str) -> float:
    """How far a page may move when its fonts arrive late: a few pixels, less with a live figure.

    Readers don't notice that, and Lighthouse gives a full score below 0.1.
    """
    return 0.01 if name in FIGURES else 0.02


def switch_to(page: Page, mode: str) -> None:
    """Switch the system between light and dark mode, and wait for the page to follow."""
    page.emulate_media(color_scheme="dark" if mode == "dark" else "light")
    expect(page.locator("html")).to_have_attribute("data-theme", mode)
    page.wait_for_function(AT_REST)
    next_frame(page)
    next_frame(page)  # what scrolls with another font is marked one frame later


def too_wide(page: Page) -> list[str]:
    """The elements that make a page scroll sideways."""
    return [f"wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]


def too_tall(page: Page) -> list[str]:
    """The sections that didn't fit into the space reserved for them before they were laid out."""
    return [f"overlaps the next section: {text}" for text in page.evaluate(TALLER_THAN_RESERVED)]


@dataclass
class Visit:
    """An open page, and what happened while it loaded."""

    page: Page
    base: str
    foreign: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    loaded: set[str] = field(default_factory=set)

    def lay_out(self) -> None:
        """Lay out everything that has only an estimated size until the first scroll."""
        # Only the event is sent, since a short page has nothing to scroll.
        self.page.evaluate("dispatchEvent(new Event('scroll'))")
        self.page.wait_for_function(LAID_OUT)
        next_frame(self.page)  # asks for the fonts of what has just been laid out
        self.page.evaluate("document.fonts.ready")
        next_frame(self.page)
        next_frame(self.page)  # what scrolls is found in one frame, and marked in the next

    def read_through(self) -> None:
        """Scroll to the end and back, so that everything that loads lazily is loaded."""
        self.lay_out()
        self.page.evaluate(SCROLL)
        self.page.wait_for_load_state("networkidle")

    def faults(self) -> list[str]:
        """Everything that has gone wrong so far, one per line."""
        return [
            *(f"asks another host: {url}" for url in self.foreign),
            *(f"not loaded: {url}" for url in self.failed),
            *(f"error in the console: {text}" for text in self.errors),
        ]

    def note_failure(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # aborted: the reader left before it arrived
            self.failed.append(request.url)

    def note_request(self, request: Request) -> None:
        if request.url.startswith(("data:", "blob:")):
            return
        if request.url.startswith(self.base):
            self.loaded.add(request.url.removeprefix(self.base).partition("?")[0].partition("#")[0])
        else:
            self.foreign.append(request.url)


def _open_before_fonts(page: Page, url: str) -> None:
    waiting: list[Route] = []
    drawn = False

    def hold(route: Route) -> None:
        if drawn:
            route.continue_()
        else:
            waiting.append(route)

    page.route(FONTS, hold)
    page.goto(url, wait_until="domcontentloaded")
    page.wait_for_function(DRAWN)
    next_frame(page)
    drawn = True
    for route in waiting:
        route.continue_()
    page.wait_for_load_state("load")
    page.evaluate("document.fonts.ready")


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
    late_fonts: bool = False,
) -> Iterator[Visit]:
    """Open a page of the site in a fresh context, like a first-time visitor.

    With `late_fonts`, fonts arrive only after the page has been drawn without them.
    """
    context = browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if mode == "dark" else "light",
        java_script_enabled=script,
        reduced_motion="reduce" if reduced_motion else "no-preference",
        is_mobile=width < 500,
        has_touch=width < 500,
        permissions=["clipboard-read", "clipboard-write"] if base.startswith("http") else None,
    )
    context.set_default_timeout(PATIENCE)
    try:
        page = context.new_page()
        seen = Visit(page, base)
        page.on("request", seen.note_request)
        page.on("requestfailed", seen.note_failure)
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
        if late_fonts:
            _open_before_fonts(page, base + path)
        else:
            page.goto(base + path, wait_until="load")
        yield seen
    finally:
        context.close()
