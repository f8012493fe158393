"""Changes the last bit of floating-point numbers, each by a hash of its own bits."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

UNSIGNED = {2: np.uint16, 4: np.uint32, 8: np.uint64}
# How many last bits of a number are zero only if it was computed exactly, by its size in bytes. The
# sum of 1 and 2 is 3 on every processor.
EXACT_BITS = {2: 3, 4: 8, 8: 20}
# One in so many numbers moves up, and as many down. The libraries add and approximate 16-bit
# numbers in 32 bits and round the result once, so an error in the last of 24 bits shows in the last
# of 11 or 8 only beside a tie.
ONE_IN = {2: 512, 4: 4, 8: 4}


def change(bits: NDArray[np.unsignedinteger], seed: int, exact_bits: int) -> None:
    """Move each number by one unit in its last place, up or down, or leave it, in place.

    Of 32-bit and 64-bit numbers a quarter moves up and a quarter down, of 16-bit numbers few do.
    Numbers whose last bits are all zero stay: they are exact, or zero, infinite or not a number.

    Args:
        bits: the bits of the numbers, contiguous, as unsigned integers.
        seed: another seed changes other numbers.
        exact_bits: how many last bits are zero in an exact number.
    """
    _change(bits, seed, (1 << exact_bits) - 1, ONE_IN[bits.itemsize])


def are_exact(bits: NDArray[np.unsignedinteger], exact_bits: int) -> bool:
    """Whether the last bits of all numbers are zero: then their sum is exact, in any order."""
    return bool(_are_exact(bits, (1 << exact_bits) - 1))


@numba.njit(cache=True)
def _are_exact(bits: NDArray[np.unsignedinteger], exact: int) -> bool:
    for i in range(bits.size):  # noqa: SIM110 -- Numba compiles no generators
        if np.uint64(bits[i]) & np.uint64(exact) != 0:
            return False
    return True


@numba.njit(cache=True)
def _change(bits: NDArray[np.unsignedinteger], seed: int, exact: int, one_in: int) -> None:
    # The constants of SplitMix64 (Steele, Lea and Flood 2014), which spread every bit over all.
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
