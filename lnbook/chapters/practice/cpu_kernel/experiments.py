"""The chapter's kernels, for its benchmark.

The chapter defines the same functions in its cells; a test checks that they stay the same. Nothing
is compiled until it's called.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

import numpy as np
from numba import njit, prange

__all__: list[str] = []  # the chapter defines them itself

ANY_ORDER = {"reassoc", "contract", "arcp", "nsz"}
BLOCKS = 8


def forward(x, weight, bias, eps, y, means, rstds):
    size, one = np.float32(x.shape[1]), np.float32(1)
    for n in range(x.shape[0]):
        mean = square = np.float32(0)
        for i in range(x.shape[1]):
            mean += x[n, i]
        mean /= size
        for i in range(x.shape[1]):
            square += (x[n, i] - mean) * (x[n, i] - mean)
        rstd = one / np.sqrt(square / size + eps)
        for i in range(x.shape[1]):
            y[n, i] = (x[n, i] - mean) * rstd * weight[i] + bias[i]
        means[n], rstds[n] = mean, rstd


strict_forward = njit(forward)
fast_forward = njit(fastmath=ANY_ORDER)(forward)


def backward(dy, x, weight, means, rstds, dx, dweight, dbias):
    size = np.float32(x.shape[1])
    for n in range(x.shape[0]):
        mean, rstd = means[n], rstds[n]
        sum_g = sum_gx = np.float32(0)
        for i in range(x.shape[1]):
            g = dy[n, i] * weight[i]
            sum_g += g
            sum_gx += g * (x[n, i] - mean) * rstd
        a, b = sum_g / size, sum_gx / size
        for i in range(x.shape[1]):
            xhat = (x[n, i] - mean) * rstd
            dx[n, i] = rstd * (dy[n, i] * weight[i] - a - xhat * b)
            dweight[i] += dy[n, i] * xhat
            dbias[i] += dy[n, i]


strict_backward = njit(backward)
fast_backward = njit(fastmath=ANY_ORDER)(backward)


def sums(dy, x, weight, mean, rstd):
    sum_g = sum_gx = np.float32(0)
    for i in range(len(x)):
        g = dy[i] * weight[i]
        sum_g += g
        sum_gx += g * (x[i] - mean) * rstd
    return sum_g, sum_gx


fast_sums = njit(fastmath=ANY_ORDER)(sums)


@njit(fastmath=ANY_ORDER)
def backward_ahead(dy, x, weight, means, rstds, dx, dweight, dbias):
    size, last = np.float32(x.shape[1]), len(x) - 1
    sum_g, sum_gx = fast_sums(dy[0], x[0], weight, means[0], rstds[0])
    for n in range(len(x)):
        a, b, m = sum_g / size, sum_gx / size, min(n + 1, last)
        sum_g = sum_gx = np.float32(0)
        for i in range(x.shape[1]):
            xhat = (x[n, i] - means[n]) * rstds[n]
            dx[n, i] = rstds[n] * (dy[n, i] * weight[i] - a - xhat * b)
            dweight[i] += dy[n, i] * xhat
            dbias[i] += dy[n, i]
            g = dy[m, i] * weight[i]
            sum_g += g
            sum_gx += g * (x[m, i] - means[m]) * rstds[m]


@njit(parallel=True)
def forward_blocks(x, weight, bias, eps, y, means, rstds):
    height = (len(x) + BLOCKS - 1) // BLOCKS
    for k in prange(BLOCKS):
        part = slice(k * height, (k + 1) * height)
        fast_forward(x[part], weight, bias, eps,
                     y[part], means[part], rstds[part])  # fmt: skip


@njit(parallel=True)
def backward_blocks(dy, x, weight, means, rstds, dx, dweight, dbias):
    height = (len(x) + BLOCKS - 1) // BLOCKS
    dweights = np.zeros((BLOCKS, x.shape[1]), np.float32)
    dbiases = np.zeros((BLOCKS, x.shape[1]), np.float32)
    for k in prange(BLOCKS):
        part = slice(k * height, (k + 1) * height)
        if k * height < len(x):
            backward_ahead(
                dy[part],
                x[part],
                weight,
                means[part],
                rstds[part],
                dx[part],
                dweights[k],
                dbiases[k],
            )
    for k in range(BLOCKS):
        for i in range(x.shape[1]):
            dweight[i] += dweights[k, i]
            dbias[i] += dbiases[k, i]
