"""Choose between the compiled kernels of the fused norms and blocks of torch operations."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from lnbook.functional import _blocks
from lnbook.kernels import operators

KERNEL = None  # used in place of a size: the compiled kernel, which has no blocks


@contextmanager
def blocks_of(size: int | None) -> Iterator[None]:
    """Inside the `with`, use blocks of `size` elements, or the compiled kernel."""
    without = {"cpu"} if size else set()
    with (
        patch.object(operators, "DEVICES", set()),
        patch.object(operators, "_WITHOUT", without),
        patch.object(_blocks, "BLOCK", size or _blocks.BLOCK),
    ):
        yield
