"""External links: one command checks them all, here against a local server."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from bookbuild.checks.link_report import moved, problems_in
from tests.book.small_book import SmallBook

ANSWERS = {"/here": 200, "/moved": 301, "/gone": 404}


class Handler(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(ANSWERS[self.path])
        if self.path == "/moved":
            self.send_header("Location", "/here")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_every_address_is_asked_for(small: SmallBook, server: str) -> None:
    links = "".join(f"\n[{path}]({server}{path})\n" for path in ANSWERS)
    small.index.write_text(small.index.read_text() + links)
    done = small.run("check-links")
    assert "1 working, 1 redirected, 1 broken, 0 timeout" in done.stdout
    assert f"{server}/moved has moved to {server}/here" in done.stdout
    told = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(told) == 1
    assert told[0].startswith("error: book/index.md:")
    assert f"{server}/gone: 404" in told[0]
    assert done.returncode == 1

    small.index.write_text(small.index.read_text().replace("/gone", "/here"))
    done = small.run("check-links")
    assert done.returncode == 0, done.stdout + done.stderr


def answer(**more: object) -> dict[str, object]:
    return {"filename": "a.md", "lineno": 3, "uri": "https://a", "code": 0, "info": ""} | more


def test_what_a_report_says() -> None:
    answers = [
        answer(status="working"),
        answer(status="timeout", info="no answer\nafter 30 s"),
        answer(status="redirected", code=302, info="https://b"),
        answer(status="redirected", code=308, info="https://c"),
    ]
    assert list(problems_in(answers)) == ["book/a.md:3: https://a: no answer after 30 s"]
    assert list(moved(answers)) == ["book/a.md:3: https://a has moved to https://c"]
