"""Opens pages in the system's Chromium, headless and offline."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, Playwright, sync_playwright

from bookbuild.errors import BookError

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
VARIABLE = "CHROMIUM"
START_SECONDS = 120  # on a busy machine
FLAGS = (
    "--disable-gpu",
    "--disable-dev-shm-usage",
    # No host except localhost resolves, so requests to other hosts fail, as if offline.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


def find_chromium() -> str:
    """The path of the Chromium executable.

    Raises:
        BookError: if there is none.
    """
    named = os.environ.get(VARIABLE)
    for name in (named,) if named else NAMES:
        found = shutil.which(name)
        if found:
            return found
    raise BookError(
        f"{VARIABLE} names '{named}', which is not a program on this machine"
        if named
        else "this needs Chromium, which is not installed: install it (Debian, Ubuntu: "
        f"apt install chromium) or point to it with {VARIABLE}=..."
    )


def launch(playwright: Playwright) -> Browser:
    """Start the Chromium that `find_chromium` finds."""
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0  # Chromium's sandbox refuses root
    return playwright.chromium.launch(
        executable_path=find_chromium(),
        args=list(FLAGS),
        chromium_sandbox=not as_root,
        timeout=1000 * START_SECONDS,
    )


@contextlib.contextmanager
def open_page(file: Path, *, scripts: bool = True) -> Iterator[Page]:
    """Open a local file, and wait until it's loaded, however long that takes.

    Raises:
        BookError: if Chromium doesn't start, or fails inside the `with` block.
    """
    try:
        with sync_playwright() as playwright, launch(playwright) as browser:
            page = browser.new_page(java_script_enabled=scripts)
            page.set_default_timeout(0)  # hundreds of pages with thousands of formulas
            page.goto(file.resolve().as_uri())
            yield page
    except Error as error:
        first, *_ = error.message.splitlines()  # the other lines are its log
        raise BookError(f"Chromium: {first}") from None
