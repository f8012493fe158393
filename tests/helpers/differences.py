"""Derivatives by finite differences."""

import numpy as np


def central_difference(function, x, step=1e-6):
    """Return the gradient of a scalar function by central differences."""
    grad = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[index] += step
        behind[index] -= step
        grad[index] = (function(ahead) - function(behind)) / (2.0 * step)
    return grad
