"""Starts a chapter from the template: text, code, tests and an entry in _toc.yml."""

from __future__ import annotations

import re
from pathlib import Path

from bookbuild.book import Book
from bookbuild.errors import BookError

TEMPLATE = Path(__file__).with_name("template")


def new_chapter(book: Book, name: str) -> None:
    """Write the files for a new chapter and put it at the end of an existing part.

    Args:
        book: the book.
        name: the part and the chapter, for example `formula/scale`.

    Raises:
        BookError: if the name isn't a part and a chapter, or the chapter already exists.
    """
    parts = sorted({chapter.name.partition("/")[0] for chapter in book.chapters})
    found = re.fullmatch(r"([a-z]+(?:-[a-z]+)*)/([a-z][a-z0-9]*(?:-[a-z0-9]+)*)", name)
    if not found or found[1] not in parts:
        expected = f"NAME=part/chapter in lowercase, where part is one of {', '.join(parts)}"
        raise BookError(f"expected {expected}, but got {name!r}")
    files = _files(book, name)
    there = [book.show(path) for path in files if path.exists()]
    if there:
        raise BookError(*(f"{path} already exists" for path in there))
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(book.show(path))
    book.toc.write_text(_listed(book.toc.read_text(encoding="utf-8"), name), encoding="utf-8")
    print(f"{book.show(book.toc)}: chapter added\nNext: make notebooks NAME={name}, then make test")


def _files(book: Book, name: str) -> dict[Path, str]:
    """The new files' paths and contents."""
    folder, chapter = name.replace("-", "_"), name.partition("/")[2]
    values = {
        "{{title}}": chapter.replace("-", " ").capitalize(),
        "{{module}}": folder.replace("/", "."),
        "{{label}}": chapter,
    }

    def filled(file: str) -> str:
        text = (TEMPLATE / f"{file}.in").read_text(encoding="utf-8")
        for placeholder, value in values.items():
            text = text.replace(placeholder, value)
        return text

    code, tests = (book.root / where / "chapters" / folder for where in ("lnbook", "tests"))
    return {
        book.source / f"{name}.md": filled("chapter.md"),
        code / "__init__.py": f'"""What `book/{name}.md` imports."""\n',
        **{code / file: filled(file) for file in ("experiments.py", "figures.py", "exercises.py")},
        **{tests / file: filled(file) for file in ("test_experiments.py", "test_exercises.py")},
    }


def _listed(toc: str, name: str) -> str:
    """The table of contents with the chapter added at the end of its part."""
    part = name.partition("/")[0]
    lines = toc.splitlines(keepends=True)
    last = max(number for number, line in enumerate(lines) if f"- file: {part}/" in line)
    indent = lines[last].partition("-")[0]
    lines.insert(last + 1, f"{indent}- file: {name}\n")
    return "".join(lines)
