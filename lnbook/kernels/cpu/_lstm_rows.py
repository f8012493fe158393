"""The loops over one row of a layer-normalized LSTM: a norm, the gates, the cell, and back.

The notation is that of `lnbook.recurrent.steps`; `m` is the cell before its norm. Each loop reads
and writes only a few vectors, because the compiler has to make sure that they don't overlap.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

import numpy as np

from lnbook.kernels.cpu._compile import fast, strict
from lnbook.kernels.cpu._vector_math import sigmoid, tanh

__all__ = [
    "activate",
    "add_scaled",
    "add_to",
    "affine",
    "back_through_cell",
    "back_through_norm",
    "back_through_output",
    "cell",
    "copy",
    "normalize",
    "output",
    "shifted",
    "statistics",
]


@strict
def inverse_root(variance, eps):
    """Return r, or NaN if the variance overflows: a 0 would make the row look constant."""
    shifted = variance + eps
    return np.sqrt(shifted) / shifted


@strict
def mean_of(total, count, one):
    return total / type(one)(count)


@fast
def statistics(a, eps, one):
    """Return the mean and r of a row."""
    total = square = one - one
    for i in range(len(a)):
        total += a[i]
    mean = mean_of(total, len(a), one)
    for i in range(len(a)):
        square += (a[i] - mean) * (a[i] - mean)
    return mean, inverse_root(mean_of(square, len(a), one), eps)


@fast
def normalize(a, mean, r, xhat):
    for i in range(len(a)):
        xhat[i] = (a[i] - mean) * r


@fast
def affine(xhat, gain, shift, a):
    for i in range(len(a)):
        a[i] = xhat[i] * gain[i] + shift[i]


@fast
def add_scaled(xhat, gain, a):
    for i in range(len(a)):
        a[i] += xhat[i] * gain[i]


@fast
def shifted(m, mean, r, gain, shift, normed):
    for i in range(len(m)):
        normed[i] = (m[i] - mean) * r * gain[i] + shift[i]


@fast
def add_to(a, total):
    for i in range(len(a)):
        total[i] += a[i]


@fast
def copy(a, target):
    for i in range(len(a)):
        target[i] = a[i]


@fast
def activate(a):
    """Apply the nonlinearities of the gates i, f, g, o, in place."""
    size = len(a) // 4
    first, candidate, last = a[: 2 * size], a[2 * size : 3 * size], a[3 * size :]
    for i in range(len(first)):
        first[i] = sigmoid(first[i])
    for i in range(len(candidate)):
        candidate[i] = tanh(candidate[i])
    for i in range(len(last)):
        last[i] = sigmoid(last[i])


@fast
def cell(gates, c, m):
    size = len(c)
    i, f, g = gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size]
    for j in range(size):
        m[j] = f[j] * c[j] + i[j] * g[j]


@fast
def output(gates, normed, h):
    o = gates[3 * len(h) :]
    for j in range(len(h)):
        h[j] = o[j] * tanh(normed[j])


@fast
def back_through_output(dh, gates, normed, da, dnormed):
    """Go back from the hidden state to the output gate, before its sigmoid, and to LN(m)."""
    size = len(dh)
    o, da_o = gates[3 * size :], da[3 * size :]
    for j in range(size):
        squashed = tanh(normed[j])
        upstream = dh[j] * o[j]
        da_o[j] = upstream * squashed * (type(squashed)(1) - o[j])
        dnormed[j] = upstream * (type(squashed)(1) - squashed * squashed)


@fast
def back_through_cell(dm, gates, c, da, dc):
    """Go back from m to gates i, f and g, before their nonlinearities, and to the previous cell."""
    size = len(dm)
    i, f, g = gates[:size], gates[size : 2 * size], gates[2 * size : 3 * size]
    da_i, da_f, da_g = da[:size], da[size : 2 * size], da[2 * size : 3 * size]
    for j in range(size):
        one = type(dm[j])(1)
        da_i[j] = dm[j] * g[j] * i[j] * (one - i[j])
        da_g[j] = dm[j] * i[j] * (one - g[j] * g[j])
    for j in range(size):
        kept = dm[j] * f[j]
        da_f[j] = kept * c[j] * (type(kept)(1) - f[j])
        dc[j] = kept


@fast
def back_through_norm(dy, xhat, r, gain, dx, dgain, dshift, one):
    """Go back through one norm, and add to the gradients of its gain and shift."""
    size = len(dy)
    total = product = one - one
    for i in range(size):
        g = dy[i] * gain[i]
        total += g
        product += g * xhat[i]
    a, b = mean_of(total, size, one), mean_of(product, size, one)
    for i in range(size):
        dgain[i] += dy[i] * xhat[i]
        dshift[i] += dy[i]
    for i in range(size):
        dx[i] = r * (dy[i] * gain[i] - a - xhat[i] * b)
