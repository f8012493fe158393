"""A headless Chromium that is told what to do: open a page, run a script in it, print it."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import websocket

from bookbuild.errors import BookError

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
VARIABLE = "CHROMIUM"
START_SECONDS = 60
ANSWER_SECONDS = 1800  # printing hundreds of pages with thousands of formulas, on a busy machine


def find_chromium() -> str:
    """The program to run.

    Raises:
        BookError: if there is none.
    """
    named = os.environ.get(VARIABLE)
    for name in (named,) if named else NAMES:
        found = shutil.which(name)
        if found:
            return found
    raise BookError(
        f"{VARIABLE} names '{named}', which is no program here"
        if named
        else "the PDF is printed by Chromium, which is not installed here: install it (Debian, "
        f"Ubuntu: apt install chromium), or name the program with {VARIABLE}=..."
    )


class Page:
    """One open page."""

    def __init__(self, connection: websocket.WebSocket) -> None:
        self._connection = connection
        self._numbers = itertools.count(1)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command of the DevTools protocol and wait for its answer.

        Raises:
            BookError: if Chromium refuses or does not answer.
        """
        number = next(self._numbers)
        try:
            self._connection.send(
                json.dumps({"id": number, "method": method, "params": parameters})
            )
            while True:
                answer = json.loads(self._connection.recv())
                if answer.get("id") == number:
                    break
        except (websocket.WebSocketException, OSError, ValueError) as error:
            raise BookError(f"Chromium did not answer to {method}: {error}") from None
        if "error" in answer:
            raise BookError(f"Chromium: {method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited.

        Raises:
            BookError: if the script throws.
        """
        answer = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            text = details.get("exception", {}).get("description", details.get("text"))
            raise BookError(f"Chromium: a script of the printed book failed: {text}")
        return answer["result"].get("value")

    def go(self, file: Path) -> None:
        """Open a file of this machine, and wait until it is loaded."""
        self.ask("Page.navigate", url=file.resolve().as_uri())
        end = time.monotonic() + ANSWER_SECONDS
        while self.run("document.readyState") != "complete":
            if time.monotonic() > end:
                raise BookError(f"Chromium did not load {file.name}")
            time.sleep(0.05)

    def print_to(self, path: Path, *, complete: bool = True) -> None:
        """Print the page as its style sheet says, with bookmarks and tags if complete."""
        answer = self.ask(
            "Page.printToPDF",
            preferCSSPageSize=True,
            printBackground=True,
            generateDocumentOutline=complete,
            generateTaggedPDF=complete,
        )
        path.write_bytes(base64.b64decode(answer["data"]))


@contextlib.contextmanager
def open_page(program: str, file: Path) -> Iterator[Page]:
    """Open a file of this machine; no other host can be reached from it."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            program,
            "--headless=new",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses to run as root with it
        process = subprocess.Popen(
            [*command, "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            connection = _connect(process, Path(profile))
            page = Page(connection)
            page.ask("Page.enable")
            page.go(file)
            yield page
            connection.close()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _connect(process: subprocess.Popen[bytes], profile: Path) -> websocket.WebSocket:
    """Connect to the first page, as soon as Chromium has said on which port it listens."""
    port_file = profile / "DevToolsActivePort"
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            raise BookError(f"Chromium ended when it was started (exit status {process.poll()})")
        lines = port_file.read_text().splitlines() if port_file.exists() else []
        if len(lines) == 2:
            target = _first_page(int(lines[0]), lines[1])
            if target:
                return websocket.create_connection(
                    target,
                    timeout=ANSWER_SECONDS,
                    suppress_origin=True,
                    skip_utf8_validation=True,  # letter by letter, it takes minutes for a PDF
                )
        time.sleep(0.1)
    raise BookError(f"Chromium did not start within {START_SECONDS} seconds")


def _first_page(port: int, browser: str) -> str | None:
    connection = websocket.create_connection(
        f"ws://127.0.0.1:{port}{browser}", timeout=START_SECONDS, suppress_origin=True
    )
    try:
        targets = Page(connection).ask("Target.getTargets")["targetInfos"]
    finally:
        connection.close()
    found = [target["targetId"] for target in targets if target["type"] == "page"]
    return f"ws://127.0.0.1:{port}/devtools/page/{found[0]}" if found else None
