"""What the kernels of both norms share: arithmetic that must stay as it's written, and parameters.

The compiler may reorder the operations of a fast function, but not the ones here.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

import numpy as np

from lnbook.kernels.cpu._compile import array_at, strict, widen


@strict
def minus(number, mean, rest):
    """Subtract the mean in two steps; adding its parts first would lose digits of the second."""
    return (number - mean) - rest


@strict
def mean_of(total, count, one):
    """Divide a sum by the count, rounding only once, so that a constant row's mean is exact."""
    return total / type(one)(count)


@strict
def inverse_root(variance, eps, one):
    """Return r, or NaN if the variance overflows: a 0 would make the row look constant."""
    return type(one)(np.nan) if variance == np.inf else one / np.sqrt(variance + eps)


@strict
def scaled_twice(number, r):
    """Multiply by r twice: the square of r could underflow."""
    return number * r * r


@strict
def parameter(address, width, is_element, element, one, default):
    """Return a weight or bias as numbers to compute with, or the default if there's none."""
    vector = np.empty(width, type(one))
    if address == 0:
        vector[:] = default
    elif is_element:
        given = array_at(address, (width,), element)
        for i in range(width):
            vector[i] = widen(given[i])
    else:
        vector[:] = array_at(address, (width,), one)
    return vector
