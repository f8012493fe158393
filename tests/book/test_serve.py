"""The site on this machine: a real request over loopback, and a port that is taken."""

import socket
import subprocess
import sys
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from bookbuild.errors import BookError
from bookbuild.site.serve import serve

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def html(tmp_path: Path) -> Path:
    folder = tmp_path / "_build" / "html"
    folder.mkdir(parents=True)
    (folder / "index.html").write_text("the book")
    return folder


def test_a_page_over_loopback(html: Path) -> None:
    command = [sys.executable, "-u", "-m", "bookbuild", "--root", str(html.parents[1])]
    process = subprocess.Popen(
        [*command, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    stop = threading.Timer(600, process.kill)  # should it say nothing
    stop.start()
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[4]
        assert address.startswith("http://127.0.0.1:")
        with urlopen(address) as answer:
            assert answer.read() == b"the book"
    finally:
        stop.cancel()
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def test_a_port_that_is_taken(html: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(BookError, match=f"port {port} cannot be used .* PORT={port + 1}"):
            serve(html, port)


def test_no_site(tmp_path: Path) -> None:
    with pytest.raises(BookError, match="there is no site yet: run 'make book'"):
        serve(tmp_path, 0)
