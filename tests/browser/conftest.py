"""The small book of tests/book, for the tests that need Chromium."""

from tests.book.conftest import built, small

__all__ = ["built", "small"]
