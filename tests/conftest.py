"""What all tests share."""

import os
from pathlib import Path

import pytest

from bookbuild.book import Book
from lnbook.progress import SILENCE

os.environ[SILENCE] = "1"  # a progress bar would be one more output to compare

pytest_plugins = ["tests.chapter_costs"]

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def book() -> Book:
    return Book(ROOT)
