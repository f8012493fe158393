"""What all tests share."""

import os
from pathlib import Path

import pytest
from nbval.plugin import IPyNbCell

from bookbuild.book import Book
from bookbuild.execute import SECONDS_A_CELL, SECONDS_A_MESSAGE
from lnbook.progress import SILENCE

os.environ[SILENCE] = "1"  # a progress bar would be one more output to compare

pytest_plugins = ["tests.chapter_costs"]

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def book() -> Book:
    return Book(ROOT)


def pytest_configure(config: pytest.Config) -> None:
    """Let nbval wait as long for a cell and its kernel as `make notebooks` does."""
    config.option.nbval_cell_timeout = SECONDS_A_CELL
    config.option.nbval_kernel_startup_timeout = SECONDS_A_MESSAGE


def pytest_itemcollected(item: pytest.Item) -> None:
    """The same for what a cell prints: nbval has no option for these 5 seconds."""
    if isinstance(item, IPyNbCell):
        item.output_timeout = SECONDS_A_MESSAGE
