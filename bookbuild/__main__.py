"""The commands behind the Makefile's targets."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path

from bookbuild.errors import BookError
from bookbuild.site import unchanged
from bookbuild.site.offered import PDF_NAME, PDF_VARIABLE
from bookbuild.site.serve import serve


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return 0 if it did what was asked, else 1."""
    options = _parser().parse_args(arguments)
    try:
        _run(options, options.root.resolve())
    except BookError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


def _run(options: argparse.Namespace, root: Path) -> None:
    if options.command == "serve":
        serve(root / "_build" / "html", options.port)
        return
    if options.command == "pdf":
        os.environ[PDF_VARIABLE] = "1"
    if options.command in ("book", "pdf") and unchanged.is_unchanged(root):
        what = PDF_NAME if options.command == "pdf" else "index.html"
        print(f"Nothing has changed since the last build: {root / '_build/html' / what}")
        return
    # Sphinx and all that comes with it take seconds to import: only where they are needed.
    from bookbuild.book import Book
    from bookbuild.commands import COMMANDS

    COMMANDS[options.command](Book(root), options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bookbuild", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the folder of the book")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, what in (
        ("book", "build the site"),
        ("pdf", "build the site and print it as one PDF"),
    ):
        build = commands.add_parser(name, help=what)
        build.add_argument("--verbose", action="store_true", help="show what Sphinx does")
    notebooks = commands.add_parser("notebooks", help="renew the executed references")
    notebooks.add_argument("chapter", nargs="*", help="for example formula/step-by-step")
    notebooks.add_argument("--all", action="store_true", help="every chapter, changed or not")
    commands.add_parser("lint", help="check the code cells of chapters")
    commands.add_parser("check-links", help="ask for every address outside (needs a network)")
    commands.add_parser("differences", help="how the references differ from the last commit")
    update = commands.add_parser("update-pins", help="raise the pinned versions")
    update.add_argument("packages", nargs="*", help="raise only these, and what they need")
    update.add_argument("--index", default="", help="an extra package index")
    again = commands.add_parser("reproduce", help="compare every output under several settings")
    again.add_argument("chapter", nargs="*", help="default: all")
    again.add_argument(
        "--settings", nargs="+", default=[], help="for example noise-0; default: all"
    )
    again.add_argument(
        "--changed", action="store_true", help="only what changed since its outputs were the same"
    )
    bugs = commands.add_parser("mutants", help="put known bugs into copies of lnbook")
    bugs.add_argument("bug", nargs="*", help="for example 'unbiased variance'; default: all")
    bugs.add_argument("--all", action="store_true", help="every chapter, not up to the first red")
    commands.add_parser("costs", help="show how long each chapter ran and its peak memory")
    commands.add_parser("licenses", help="list the licenses of what is used")
    serve = commands.add_parser("serve", help="serve the built site on this machine")
    serve.add_argument("--port", type=int, default=8000)
    return parser


if __name__ == "__main__":
    status = main()
    gc.freeze()  # Python would look through millions of nodes for what it may free, then end
    raise SystemExit(status)
