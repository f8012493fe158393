"""Knows where everything in the book is, and which chapters the book has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sphinx_external_toc.parsing import MalformedError, parse_toc_yaml

from bookbuild.chapter import Chapter
from bookbuild.errors import BookError, require_known

NOT_PAGES = ("_static", "_extra", "_templates", "_slides")


@dataclass(frozen=True)
class Book:
    """The folders of one book, all derived from its root."""

    root: Path

    @property
    def source(self) -> Path:
        """The folder with the pages."""
        return self.root / "book"

    @property
    def toc(self) -> Path:
        """The table of contents."""
        return self.root / "_toc.yml"

    @property
    def config(self) -> Path:
        """Jupyter Book's configuration."""
        return self.root / "_config.yml"

    @property
    def package(self) -> Path:
        """The source of lnbook, which chapters import."""
        return self.root / "lnbook"

    @property
    def project(self) -> Path:
        """The metadata of lnbook, including its dependencies."""
        return self.root / "pyproject.toml"

    @property
    def constraints(self) -> Path:
        """The pinned versions."""
        return self.root / "constraints.txt"

    @property
    def conda(self) -> Path:
        """The environment for conda and Binder."""
        return self.root / "environment.yml"

    @property
    def references(self) -> Path:
        """The folder with the executed reference notebooks."""
        return self.root / "tests" / "notebooks"

    @property
    def build(self) -> Path:
        """The folder for all build output."""
        return self.root / "_build"

    @property
    def html(self) -> Path:
        """The built site."""
        return self.build / "html"

    def show(self, path: Path) -> str:
        """A path relative to the root, as you would type it there."""
        return path.relative_to(self.root).as_posix()

    @cached_property
    def pages(self) -> tuple[str, ...]:
        """The names of all pages, in table-of-contents order.

        Raises:
            BookError: if the table of contents and the folder disagree.
        """
        try:
            listed = tuple(parse_toc_yaml(self.toc))
        except (MalformedError, FileNotFoundError) as error:
            raise BookError(f"{self.show(self.toc)}: {error}") from None
        on_disk = {
            path.relative_to(self.source).with_suffix("").as_posix()
            for path in self.source.rglob("*.md")
            if path.relative_to(self.source).parts[0] not in NOT_PAGES
        }
        missing = [
            f"{self.show(self.toc)}: '{name}' is listed, but {self.show(self.source)}/{name}.md "
            "does not exist"
            for name in listed
            if name not in on_disk
        ]
        unlisted = [
            f"{self.show(self.source)}/{name}.md: not listed in {self.show(self.toc)}"
            for name in sorted(on_disk.difference(listed))
        ]
        if missing or unlisted:
            raise BookError(*missing, *unlisted)
        return listed

    @cached_property
    def chapters(self) -> tuple[Chapter, ...]:
        """The pages with code cells, read and checked, in table-of-contents order.

        Raises:
            BookError: if a page can't be read or names a kernel that isn't installed.
        """
        chapters: list[Chapter] = []
        problems: list[str] = []
        for name in self.pages:
            path = self.source / f"{name}.md"
            try:
                chapter = Chapter.read(name, path, shown=self.show(path))
            except BookError as error:
                problems.extend(error.problems)
                continue
            if chapter is not None:
                chapters.append(chapter)
        if problems:
            raise BookError(*problems)
        return tuple(chapters)

    @cached_property
    def labs(self) -> tuple[Chapter, ...]:
        """The lab sheets, which are notebooks but not pages; their names start with `labs/`.

        Raises:
            BookError: if a lab can't be read or has no code cells.
        """
        found = []
        for path in sorted((self.root / "labs").glob("*.md")):
            lab = Chapter.read(f"labs/{path.stem}", path, shown=self.show(path))
            if lab is None:
                raise BookError(f"{self.show(path)}: has no code cells")
            found.append(lab)
        return tuple(found)

    @property
    def notebooks(self) -> tuple[Chapter, ...]:
        """Everything that's executed: the chapters and the labs."""
        return (*self.chapters, *self.labs)

    def named(self, names: Sequence[str]) -> list[Chapter]:
        """The chapters and labs with these names.

        Raises:
            BookError: if a name doesn't match any chapter or lab.
        """
        chapters = {chapter.name: chapter for chapter in self.notebooks}
        require_known("chapter", names, chapters)
        return [chapters[name] for name in names]

    def reference(self, chapter: Chapter) -> Path:
        """The path of a chapter's executed reference."""
        return self.references / f"{chapter.name}.ipynb"
