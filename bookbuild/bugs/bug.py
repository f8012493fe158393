"""A bug, described as a text replacement in one file."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from bookbuild.errors import BookError


@dataclass(frozen=True)
class Bug:
    """One bug in one place.

    Attributes:
        name: what is wrong, in a few words; the same for every place with this bug.
        file: the file to change, as a path from the book's root.
        before: the correct text, which occurs in the file exactly once.
        after: the wrong text.
    """

    name: str
    file: str
    before: str
    after: str

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return self.file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def applied(self, text: str) -> str:
        """The file's text with the bug in it.

        Raises:
            BookError: if the correct text doesn't occur in it exactly once.
        """
        count = text.count(self.before)
        if count != 1:
            raise BookError(
                f"{self.file}: the bug '{self.name}' replaces text that should occur once but "
                f"occurs {count} times: {self.before!r}"
            )
        return text.replace(self.before, self.after)

    def place(self, text: str) -> str:
        """The name of the function or class that gets the bug.

        Raises:
            BookError: if the correct text doesn't occur in the file exactly once.
        """
        self.applied(text)
        line = text[: text.index(self.before)].count("\n") + 1
        definitions = (ast.FunctionDef, ast.ClassDef)
        return next(
            node.name
            for node in ast.parse(text).body
            if isinstance(node, definitions) and node.lineno <= line <= (node.end_lineno or 0)
        )

    def put_into(self, root: Path) -> None:
        """Write the bug into a book's file.

        Raises:
            BookError: if the file is missing, or doesn't contain the correct text exactly once.
        """
        path = root / self.file
        if not path.is_file():
            raise BookError(f"{self.file}: no such file, but the bug '{self.name}' changes it")
        path.write_text(self.applied(path.read_text(encoding="utf-8")), encoding="utf-8")
