"""Fixtures that several test files ask for with `pytestmark`."""

from collections.abc import Iterator

import matplotlib as mpl
import pytest
import torch

from lnbook.style import RC_PARAMS


@pytest.fixture
def book_style() -> Iterator[None]:
    """Draw as the chapters do."""
    with mpl.rc_context(dict(RC_PARAMS)):
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
