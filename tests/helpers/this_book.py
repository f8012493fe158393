"""The book under test. Reading its chapters takes seconds, so all test files share this one."""

from pathlib import Path

from bookbuild.book import Book

ROOT = Path(__file__).resolve().parents[2]
STARTUP = ROOT / "tests" / "helpers" / "startup"  # processes start faster with this on their path
BOOK = Book(ROOT)
