"""Serves the built site on this machine."""

from __future__ import annotations

import functools
import http.server
from pathlib import Path

from bookbuild.errors import BookError


def serve(html: Path, port: int) -> None:
    """Serve the built site on the loopback address until interrupted.

    Raises:
        BookError: if there is no site or the port is taken.
    """
    if not (html / "index.html").exists():
        raise BookError("there is no site yet: run 'make book'")
    handler = functools.partial(_QuietHandler, directory=str(html))
    try:
        server = http.server.ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError as error:
        raise BookError(
            f"port {port} cannot be used ({error.strerror}): try 'make serve PORT={port + 1}'"
        ) from None
    print(f"The book is at http://127.0.0.1:{server.server_port}/ (Ctrl+C ends)", flush=True)
    with server:
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print()


class _QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_args: object) -> None:
        """Say nothing of each request."""
