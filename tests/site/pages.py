"""The pages of the site that are tested: all that the table of contents lists, and Sphinx's own."""

from pathlib import Path

from bookbuild.book import Book

BOOK = Book(Path(__file__).resolve().parents[2])
PAGES = [*BOOK.pages, "search"]
CHAPTERS = [chapter.name for chapter in BOOK.chapters]
