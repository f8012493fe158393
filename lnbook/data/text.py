"""English text included in Python: the topics of its `help`, as characters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lnbook._check import check_generator, checked_count

__all__ = ["Text", "load_text", "windows"]

TEST_SHARE = 0.1
RARE = 40


@dataclass(frozen=True)
class Text:
    """A text as numbers, one per character.

    Attributes:
        alphabet: the characters; a character's position is its number.
        train: int64 of shape `(T,)`, the first nine tenths of the text.
        test: int64, the rest.

    Example:
        >>> text = Text("abn", torch.tensor([1, 0, 2, 0, 2, 0]), torch.tensor([2, 0]))
        >>> text.decode(text.train)
        'banana'
    """

    alphabet: str
    train: Tensor
    test: Tensor

    def decode(self, numbers: Tensor) -> str:
        """Return the text represented by `numbers`, of shape `(L,)`."""
        return "".join(self.alphabet[number] for number in numbers.tolist())


def load_text() -> Text:
    """Load this Python's help topics as one English text of about 460,000 characters.

    Topics are in alphabetical order. Runs of spaces become one space; characters that occur fewer
    than 40 times become spaces. The text differs between Python versions, so don't print anything
    that depends on its letters.

    Source: the `pydoc_data.topics` module in the standard library.

    Example:
        >>> text = load_text()
        >>> len(text.train) > 300_000 and "e" in text.alphabet
        True
    """
    from pydoc_data.topics import topics  # not at the top, because it's half a megabyte

    raw = "\n\n".join(topics[name] for name in sorted(topics))
    characters = np.array(list(raw))
    found, places, counts = np.unique(characters, return_inverse=True, return_counts=True)
    kept = np.where(counts >= RARE, found, " ")
    text = "\n".join(" ".join(line.split()) for line in "".join(kept[places]).split("\n"))
    alphabet = "".join(sorted(set(text)))
    numbers = torch.from_numpy(np.searchsorted(np.array(list(alphabet)), np.array(list(text))))
    cut = round(len(numbers) * (1 - TEST_SHARE))
    return Text(alphabet, numbers[:cut], numbers[cut:])


def windows(
    rng: np.random.Generator, numbers: Tensor, count: int, length: int
) -> tuple[Tensor, Tensor]:
    """Cut out `count` random windows of `length` characters, and each character's successor.

    Args:
        rng: generator for the positions.
        numbers: a text of shape `(T,)`.
        count: number of windows.
        length: number of characters in each.

    Returns:
        Two tensors of shape `(count, length)`: the characters, and the character after each one.

    Raises:
        TypeError: `rng` is not a NumPy generator, or a number is not an integer.
        ValueError: `count` or `length` is below 1, or the text is not longer than `length`.

    Example:
        >>> x, y = windows(np.random.default_rng(0), torch.arange(10), 1, 3)
        >>> x, y
        (tensor([[5, 6, 7]]), tensor([[6, 7, 8]]))
    """
    check_generator(rng, "windows")
    checked_count(count, "count", "windows", least=1)
    checked_count(length, "length", "windows", least=1)
    if len(numbers) <= length:
        raise ValueError(
            f"windows: expected the text to be longer than length, but got length {length} "
            f"and {len(numbers)} characters"
        )
    starts = torch.from_numpy(rng.integers(0, len(numbers) - length, (count, 1)))
    places = starts + torch.arange(length)
    return numbers[places], numbers[places + 1]
