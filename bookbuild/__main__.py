"""The commands behind the Makefile's targets.

Sphinx and its dependencies take seconds to import, so each command imports only what it needs.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from pathlib import Path

from bookbuild.errors import BookError
from bookbuild.site import unchanged
from bookbuild.site.offered import PDF_NAME, PDF_VARIABLE


def main() -> int:
    """Run one command; return 0 on success and 1 on failure."""
    options = _parser().parse_args()
    run = _build if options.command in ("book", "pdf") else _run
    try:
        run(options, options.root.resolve())
    except BookError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return 1
    return 0


def _build(options: argparse.Namespace, root: Path) -> None:
    page = "index.html"
    if options.command == "pdf":
        os.environ[PDF_VARIABLE] = "1"
        page = PDF_NAME
    if unchanged.is_unchanged(root):
        print(f"Nothing has changed since the last build: {root / '_build/html' / page}")
        return
    from bookbuild.book import Book
    from bookbuild.site.build import build

    # Pages are trees of many small objects: with the default threshold, the garbage collector would
    # run constantly.
    gc.set_threshold(200_000, 20, 100)
    build(Book(root), quiet=not options.verbose)


def _run(options: argparse.Namespace, root: Path) -> None:
    from bookbuild.book import Book

    book, o = Book(root), options
    match o.command:
        case "chapter":
            from bookbuild.new_chapter import new_chapter

            new_chapter(book, o.name)
        case "notebooks":
            from bookbuild.outputs import references

            references.renew(book, o.chapter, everything=o.all)
        case "lint":
            from bookbuild.checks import lint_cells

            lint_cells.lint(book)
        case "check-links":
            from bookbuild.checks import check_links

            check_links.check(book)
        case "differences":
            from bookbuild.outputs import differences

            differences.show(book)
        case "update-pins":
            from bookbuild.environment import update_pins

            update_pins.update_pins(book, o.packages, o.index)
        case "reproduce":
            from bookbuild.reproduce.reproduce import reproduce

            reproduce(book, o.chapter, o.settings, only_changed=o.changed)
        case "bugs":
            from bookbuild.bugs.run import try_bugs

            try_bugs(book, o.bug, everything=o.all)
        case "costs":
            from bookbuild.outputs import costs

            costs.record(book) if o.record else costs.show(book)
        case "licenses":
            from bookbuild.environment import licenses

            licenses.write(book)
        case "slides":
            from bookbuild.slides.build import build_alone

            build_alone(book)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bookbuild", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(), help="the book's folder")
    commands = parser.add_subparsers(dest="command", required=True)

    def add(name: str, what: str, names: str = "", example: str = "") -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=what)
        if names:
            command.add_argument(names, nargs="*", help=example)
        return command

    for name, what in (("book", "build the site"), ("pdf", "build the site and print it as a PDF")):
        add(name, what).add_argument("--verbose", action="store_true", help="show Sphinx's output")
    add("chapter", "start a chapter from the template").add_argument("name", help="part/chapter")
    notebooks = add("notebooks", "update the references", "chapter", "such as formula/step-by-step")
    notebooks.add_argument("--all", action="store_true", help="every chapter, changed or not")
    add("lint", "check the code cells of chapters")
    add("check-links", "check every external link (needs network access)")
    add("differences", "show how the references differ from the last commit")
    update = add(
        "update-pins",
        "upgrade the pinned versions",
        "packages",
        "only these and their dependencies",
    )
    update.add_argument("--index", default="", help="an extra package index")
    again = add(
        "reproduce", "compare all outputs under several settings", "chapter", "default: all"
    )
    again.add_argument("--settings", nargs="+", default=[], help="such as noise-0; default: all")
    again.add_argument(
        "--changed", action="store_true", help="only what has changed since its last success"
    )
    bugs = add("bugs", "inject known bugs into copies of lnbook", "bug", "such as 'std for var'")
    bugs.add_argument("--all", action="store_true", help="every chapter, even after one has failed")
    add("costs", "show each chapter's running time and peak memory").add_argument(
        "--record", action="store_true", help="keep the peaks for the teacher's page"
    )
    add("licenses", "list the licenses of everything the book uses")
    add("slides", "build only the lecture slides")
    return parser


if __name__ == "__main__":
    status = main()
    gc.freeze()  # otherwise Python searches millions of nodes for garbage as it exits
    raise SystemExit(status)
