"""Changes the last bit of floating-point numbers, based on a hash of each number's bits."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}
# If this many trailing bits of a number are zero (keyed by its size in bytes), it was computed
# exactly: 1 + 2 is 3 on every processor.
EXACT_BITS = {2: 3, 4: 8, 8: 20}
# One in this many numbers moves up, and as many move down. The libraries add and approximate
# 16-bit numbers in 32 bits and round once, so an error in the last of 24 bits changes the last of
# 11 or 8 bits only near a tie.
ONE_IN = {2: 512, 4: 4, 8: 4}


def change(bits: NDArray[np.unsignedinteger], seed: int, exact_bits: int) -> None:
    """Move each number up or down by one unit in the last place, or leave it; works in place.

    A quarter of 32-bit and 64-bit numbers move up and a quarter down; few 16-bit numbers do.
    Numbers whose last bits are all zero don't change: they're exact, zero, infinite or NaN.

    Args:
        bits: the numbers' bits, contiguous, as unsigned integers.
        seed: different seeds change different numbers.
        exact_bits: how many trailing bits are zero in an exact number.
    """
    _change(bits, seed, (1 << exact_bits) - 1, ONE_IN[bits.itemsize])


def are_exact(bits: NDArray[np.unsignedinteger], exact_bits: int) -> bool:
    """Whether all numbers end in zero bits, so that their sum is exact in any order."""
    return bool(_are_exact(bits, (1 << exact_bits) - 1))


@numba.njit(cache=True)
def _are_exact(bits: NDArray[np.unsignedinteger], exact: int) -> bool:
    for i in range(bits.size):  # noqa: SIM110 -- Numba can't compile generators
        if np.uint64(bits[i]) & np.uint64(exact) != 0:
            return False
    return True


@numba.njit(cache=True)
def _change(bits: NDArray[np.unsignedinteger], seed: int, exact: int, one_in: int) -> None:
    # The constants of SplitMix64 (Steele, Lea and Flood 2014), which mix every bit into all others.
    start = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    for i in range(bits.size):
        number = np.uint64(bits[i])
        if number & np.uint64(exact) == 0:
            continue
        hashed = (number + start) * np.uint64(0xBF58476D1CE4E5B9)
        hashed = (hashed ^ (hashed >> np.uint64(31))) * np.uint64(0x94D049BB133111EB)
        share = (hashed >> np.uint64(40)) & np.uint64(one_in - 1)
        if share == 0:
            bits[i] += 1
        elif share == 1:
            bits[i] -= 1
