r"""LayerNorm in Numba: the loops over one row, and the jobs that divide rows among threads.

.. math::
    y_i = \gamma_i \hat{x}_i + \beta_i, \qquad \hat{x}_i = r \, (x_i - \mu), \qquad
    \frac{\partial \mathcal{L}}{\partial x_i} = r \left( g_i - \overline{g} - \hat{x}_i \,
    \overline{g \hat{x}} \right), \qquad g_i = \gamma_i \frac{\partial \mathcal{L}}{\partial y_i}

Source: Ba, Kiros and Hinton 2016, eq. 3, and the chain rule. A row is read from memory once; if
it fits in the cache, all later loops find it there.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

import numpy as np

from lnbook.kernels.cpu._compile import (
    array_at,
    fast,
    fence,
    job,
    narrow,
    real,
    store_past_the_cache,
    take,
    widen,
)
from lnbook.kernels.cpu._rows import inverse_root, mean_of, minus, parameter, scaled_twice

__all__ = ["backward_job", "forward_job"]

# Up to this ratio of a row's mean to its standard deviation, the rounding error of the mean is too
# small to see in the output: 8 times the rounding error of a float32 is 5e-7.
FAR = 8
INTEGER = np.int64(0)


@fast
def statistics_of(x, eps, one):
    """Return a row's mean, what rounding left of it after centering, and r."""
    total = square = rest = one - one
    for i in range(len(x)):
        total += widen(x[i])
    mean = mean_of(total, len(x), one)
    for i in range(len(x)):
        centered = minus(widen(x[i]), mean, rest)
        square += centered * centered
    variance = mean_of(square, len(x), one)
    # A constant row's standard deviation is near 0. If the mean is huge, even the square of its
    # rounding error can overflow.
    if variance == np.inf or abs(mean) > FAR * np.sqrt(variance):
        total = square = one - one
        for i in range(len(x)):
            total += minus(widen(x[i]), mean, rest)
        rest = mean_of(total, len(x), one)
        for i in range(len(x)):
            centered = minus(widen(x[i]), mean, rest)
            square += centered * centered
        variance = mean_of(square, len(x), one)
    return mean, rest, inverse_root(variance, eps, one)


@fast
def normalize(x, mean, rest, r, weight, bias, y):
    for i in range(len(x)):
        xhat = minus(widen(x[i]), mean, rest) * r
        y[i] = narrow(xhat * weight[i] + bias[i], y[i])


@fast
def forward(numbers, element, one):
    rows, width, height, past = numbers[1], numbers[2], numbers[3], numbers[4]
    eps = type(one)(real(numbers[5]))
    x = array_at(numbers[6], (rows, width), element)
    weight = parameter(numbers[7], width, numbers[9], element, one, one)
    bias = parameter(numbers[8], width, numbers[9], element, one, one - one)
    y = array_at(numbers[10], (rows, width), element)
    statistics = array_at(numbers[11], (3, rows), one)
    line = np.empty(width, y.dtype)
    while True:
        start = take(numbers) * height
        if start >= rows:
            break
        for n in range(start, min(start + height, rows)):
            mean, rest, r = statistics_of(x[n], eps, one)
            statistics[0, n], statistics[1, n], statistics[2, n] = mean, rest, r
            if past:
                normalize(x[n], mean, rest, r, weight, bias, line)
                store_past_the_cache(line, y[n], x[min(n + 1, rows - 1)])
            else:
                normalize(x[n], mean, rest, r, weight, bias, y[n])
    fence()


@fast
def products(dy, x, weight, mean, rest):
    """Return g, and g times the centered x, for one element."""
    g = widen(dy) * weight
    return g, g * minus(widen(x), mean, rest)


@fast
def sums_of(dy, x, weight, mean, rest, one):
    """Return the sums of both products over a row."""
    total = product = one - one
    for i in range(len(x)):
        g, g_centered = products(dy[i], x[i], weight[i], mean, rest)
        total += g
        product += g_centered
    return total, product


@fast
def numbers_of(statistics, n, sums, width, one):
    """Return what `derivatives` needs to know about row n; the last is mean(g * xhat) times r."""
    mean, rest, r = statistics[0, n], statistics[1, n], statistics[2, n]
    total, product = sums
    scale = scaled_twice(mean_of(product, width, one), r)
    return mean, rest, r, mean_of(total, width, one), scale


@fast
def derivatives(dy, x, row, weight):
    """Return an element of dx, and its contributions to dweight and dbias."""
    mean, rest, r, mean_g, scale = row
    centered, upstream = minus(widen(x), mean, rest), widen(dy)
    return r * (upstream * weight - mean_g - centered * scale), upstream * (centered * r), upstream


@fast
def differentiate_and_read_on(
    dy, x, n, following, row, weight, statistics, one, dx, dweight, dbias
):
    """Fill row n of dx, add to the sums, and meanwhile return `sums_of` the following row.

    The processor computes with one row while it waits for the other to arrive from memory.
    """
    dy, next_dy, x, next_x, dx = dy[n], dy[following], x[n], x[following], dx[n]
    mean, rest = statistics[0, following], statistics[1, following]
    total = product = one - one
    for i in range(len(x)):
        of_x, of_weight, of_bias = derivatives(dy[i], x[i], row, weight[i])
        dx[i] = narrow(of_x, dx[i])
        dweight[i] += of_weight
        dbias[i] += of_bias
        g, g_centered = products(next_dy[i], next_x[i], weight[i], mean, rest)
        total += g
        product += g_centered
    return total, product


@fast
def backward(numbers, element, one):
    rows, width, height = numbers[1], numbers[2], numbers[3]
    dy = array_at(numbers[4], (rows, width), element)
    x = array_at(numbers[5], (rows, width), element)
    weight = parameter(numbers[6], width, numbers[7], element, one, one)
    statistics = array_at(numbers[8], (3, rows), one)
    dx = array_at(numbers[9], (rows, width), element)
    partial = array_at(numbers[10], ((rows + height - 1) // height, 2, width), one)
    while True:
        piece = take(numbers)
        if piece * height >= rows:
            break
        dweight, dbias = partial[piece, 0], partial[piece, 1]
        dweight[:] = 0
        dbias[:] = 0
        start, last = piece * height, min((piece + 1) * height, rows) - 1
        sums = sums_of(dy[start], x[start], weight, statistics[0, start], statistics[1, start], one)
        for n in range(start, last + 1):
            # After the last row, nothing follows: it's read once more, and its sums aren't used.
            row, following = numbers_of(statistics, n, sums, width, one), min(n + 1, last)
            given = (dy, x, n, following, row, weight, statistics, one)
            sums = differentiate_and_read_on(*given, dx, dweight, dbias)


def forward_job(element, one):
    """Compile the forward pass; `forward` shows which numbers it takes."""

    def layer_norm_forward(address):
        forward(array_at(address, (12,), INTEGER), element, one)

    return job(layer_norm_forward)


def backward_job(element, one):
    """Compile the backward pass; `backward` shows which numbers it takes."""

    def layer_norm_backward(address):
        backward(array_at(address, (11,), INTEGER), element, one)

    return job(layer_norm_backward)
