"""What all tests share."""

from pathlib import Path

import pytest

from bookbuild.book import Book

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def book() -> Book:
    return Book(ROOT)
