"""Serves the built site like a web host: compressed, with the content types browsers expect."""

import functools
import gzip
import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

COMPRESSED = (".css", ".html", ".ipynb", ".js", ".json", ".svg", ".txt", ".xml")


@contextmanager
def serve(html: Path) -> Iterator[str]:
    """Serve a folder on localhost; yields its URL, with a trailing slash."""
    handler = functools.partial(_Handler, directory=str(html))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@functools.cache
def compressed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 6, mtime=0)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def handle(self) -> None:
        with suppress(ConnectionError):  # the page was closed before its last file arrived
            super().handle()

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        path = path / "index.html" if path.is_dir() else path
        if not path.is_file() or path.suffix not in COMPRESSED:
            super().do_GET()
            return
        body = compressed(path)
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def guess_type(self, path: str | Path) -> str:  # type: ignore[override]
        kind = super().guess_type(str(path))
        return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "max-age=600")
        super().end_headers()

    def log_message(self, *_args: object) -> None:
        pass
