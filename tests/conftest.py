"""Fixtures and settings that all tests share."""

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from jupyter_client.manager import KernelManager
from nbval import kernel
from nbval.plugin import IPyNbCell

from bookbuild.book import Book
from bookbuild.outputs.execute import SECONDS_A_MESSAGE, SECONDS_PER_CELL
from bookbuild.outputs.kernels import connection
from lnbook._build import SILENCE
from tests.helpers.this_book import BOOK, STARTUP

os.environ[SILENCE] = "1"  # a progress bar would be one more output to compare

# For the processes that tests start, and pytest's own workers.
PATHS = (str(STARTUP), os.environ.get("PYTHONPATH", ""))
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, PATHS))

pytest.register_assert_rewrite("tests.helpers.verdicts")
pytest_plugins = ["tests.chapter_costs"]

# Triton is available only for Linux. Elsewhere, this chapter can be read, but not run.
collect_ignore = [] if find_spec("triton") else ["notebooks/practice/gpu-kernel.ipynb"]


@pytest.fixture(scope="session")
def book() -> Book:
    return BOOK


@pytest.fixture
def book_style() -> Iterator[None]:
    """Draw in the chapters' style."""
    import matplotlib as mpl  # imported here, like torch below: the build's tests need neither

    from lnbook.notebook.style import use_style

    with mpl.rc_context():
        use_style()
        yield


def pytest_configure(config: pytest.Config) -> None:
    """Make nbval start and wait for kernels as `make notebooks` does."""
    kernel.KernelManager = lambda **settings: KernelManager(**connection(), **settings)
    config.option.nbval_cell_timeout = SECONDS_PER_CELL
    config.option.nbval_kernel_startup_timeout = SECONDS_A_MESSAGE


def pytest_itemcollected(item: pytest.Item) -> None:
    """Do the same for a cell's output: nbval has no option to change its timeout of 5 seconds."""
    if isinstance(item, IPyNbCell):
        item.output_timeout = SECONDS_A_MESSAGE


def pytest_collection_finish() -> None:
    """Make torch use one thread: every core already runs tests, and waiting threads are slow."""
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
