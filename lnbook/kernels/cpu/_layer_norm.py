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
from lnbook.kernels.cpu._rows import (
    WIDE,
    buffer,
    inverse_root,
    mean_of,
    minus,
    parameter,
    scaled_twice,
)

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
                store_past_the_cache(line, y[n], width)
            else:
                normalize(x[n], mean, rest, r, weight, bias, y[n])
    fence()


@fast
def means_of(dy, x, mean, rest, r, weight, one):
    """Return mean(g), and mean(g * xhat) times r."""
    total = product = one - one
    for i in range(len(x)):
        g = widen(dy[i]) * weight[i]
        total += g
        product += g * minus(widen(x[i]), mean, rest)
    return mean_of(total, len(x), one), scaled_twice(mean_of(product, len(x), one), r)


@fast
def derivatives(dy, x, row, weight):
    """Return an element of dx, and its contributions to dweight and dbias."""
    mean, rest, r, mean_g, scale = row
    centered, upstream = minus(widen(x), mean, rest), widen(dy)
    return r * (upstream * weight - mean_g - centered * scale), upstream * (centered * r), upstream


@fast
def differentiate(dy, x, row, weight, dx, dweight, dbias):
    for i in range(len(x)):
        of_x, of_weight, of_bias = derivatives(dy[i], x[i], row, weight[i])
        dx[i] = narrow(of_x, dx[i])
        dweight[i] += of_weight
        dbias[i] += of_bias


@fast
def differentiate_two(dy, x, n, row, following, weight, dx, dx_2, dweight, dbias):
    """Do the same for rows n and n + 1, but access the weight and the sums only once for both."""
    dy, dy_2, x, x_2 = dy[n], dy[n + 1], x[n], x[n + 1]
    for i in range(len(x)):
        of_x, of_weight, of_bias = derivatives(dy[i], x[i], row, weight[i])
        of_x_2, of_weight_2, of_bias_2 = derivatives(dy_2[i], x_2[i], following, weight[i])
        dx[i], dx_2[i] = narrow(of_x, dx[i]), narrow(of_x_2, dx_2[i])
        dweight[i] += of_weight + of_weight_2
        dbias[i] += of_bias + of_bias_2


@fast
def differentiate_rows(dy, x, start, stop, statistics, weight, one, dx, dweight, dbias):
    """Fill the first rows of dx, the gradients of rows `start` to `stop`, and add to the sums."""
    single = stop - (stop - start) % 2 if x.shape[1] >= WIDE else start
    for n in range(start, single, 2):
        own = statistics[0, n], statistics[1, n], statistics[2, n]
        row = own + means_of(dy[n], x[n], *own, weight, one)
        own = statistics[0, n + 1], statistics[1, n + 1], statistics[2, n + 1]
        following = own + means_of(dy[n + 1], x[n + 1], *own, weight, one)
        targets = dx[n - start], dx[n - start + 1]
        differentiate_two(dy, x, n, row, following, weight, *targets, dweight, dbias)
    for n in range(single, stop):
        own = statistics[0, n], statistics[1, n], statistics[2, n]
        row = own + means_of(dy[n], x[n], *own, weight, one)
        differentiate(dy[n], x[n], row, weight, dx[n - start], dweight, dbias)


@fast
def backward(numbers, element, one):
    rows, width, height, past = numbers[1], numbers[2], numbers[3], numbers[4]
    dy = array_at(numbers[5], (rows, width), element)
    x = array_at(numbers[6], (rows, width), element)
    weight = parameter(numbers[7], width, numbers[8], element, one, one)
    statistics = array_at(numbers[9], (3, rows), one)
    dx = array_at(numbers[10], (rows, width), element)
    sums = array_at(numbers[11], ((rows + height - 1) // height, 2, width), one)
    lines = buffer(width, dx)
    while True:
        piece = take(numbers)
        if piece * height >= rows:
            break
        dweight, dbias = sums[piece, 0], sums[piece, 1]
        dweight[:] = 0
        dbias[:] = 0
        start, stop = piece * height, min((piece + 1) * height, rows)
        if past:
            for n in range(start, stop, len(lines)):
                end = min(n + len(lines), stop)
                differentiate_rows(dy, x, n, end, statistics, weight, one, lines, dweight, dbias)
                store_past_the_cache(lines.ravel(), dx[n:end].ravel(), (end - n) * width)
        else:
            differentiate_rows(
                dy, x, start, stop, statistics, weight, one, dx[start:], dweight, dbias
            )
    fence()


def forward_job(element, one):
    """Compile the forward pass; `forward` shows which numbers it takes."""

    def layer_norm_forward(address):
        forward(array_at(address, (12,), INTEGER), element, one)

    return job(layer_norm_forward)


def backward_job(element, one):
    """Compile the backward pass; `backward` shows which numbers it takes."""

    def layer_norm_backward(address):
        backward(array_at(address, (12,), INTEGER), element, one)

    return job(layer_norm_backward)
