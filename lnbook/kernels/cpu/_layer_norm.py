r"""LayerNorm in Numba: the loops over one row, and the jobs that share rows out among threads.

.. math::
    y_i = \gamma_i \hat{x}_i + \beta_i, \qquad \hat{x}_i = r \, (x_i - \mu), \qquad
    \frac{\partial \mathcal{L}}{\partial x_i} = r \left( g_i - \overline{g} - \hat{x}_i \,
    \overline{g \hat{x}} \right), \qquad g_i = \gamma_i \frac{\partial \mathcal{L}}{\partial y_i}

Source: Ba, Kiros and Hinton 2016, eq. 3, and the chain rule. A row is read from memory once; all
further loops find it in the cache.
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

# Up to this ratio of a row's mean to its deviation, the rounding error of the mean is too small to
# see in the output: 8 times the rounding error of a float32 is 5e-7.
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
    # A constant row's deviation is near 0. Of a huge mean's rounding, even the square can overflow.
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
    """Return the mean of g, and the mean of g times xhat, times r."""
    total = product = one - one
    for i in range(len(x)):
        g = widen(dy[i]) * weight[i]
        total += g
        product += g * minus(widen(x[i]), mean, rest)
    return mean_of(total, len(x), one), scaled_twice(mean_of(product, len(x), one), r)


@fast
def differentiate(dy, x, mean, rest, r, weight, mean_g, scale, dx, dweight, dbias):
    for i in range(len(x)):
        centered, upstream = minus(widen(x[i]), mean, rest), widen(dy[i])
        dx[i] = narrow(r * (upstream * weight[i] - mean_g - centered * scale), dx[i])
        dweight[i] += upstream * (centered * r)
        dbias[i] += upstream


@fast
def backward(numbers, element, one):
    rows, width, height, past = numbers[1], numbers[2], numbers[3], numbers[4]
    dy = array_at(numbers[5], (rows, width), element)
    x = array_at(numbers[6], (rows, width), element)
    weight = parameter(numbers[7], width, numbers[8], element, one, one)
    statistics = array_at(numbers[9], (3, rows), one)
    dx = array_at(numbers[10], (rows, width), element)
    sums = array_at(numbers[11], ((rows + height - 1) // height, 2, width), one)
    line = np.empty(width, dx.dtype)
    while True:
        piece = take(numbers)
        if piece * height >= rows:
            break
        dweight, dbias = sums[piece, 0], sums[piece, 1]
        dweight[:] = 0
        dbias[:] = 0
        for n in range(piece * height, min((piece + 1) * height, rows)):
            mean, rest, r = statistics[0, n], statistics[1, n], statistics[2, n]
            mean_g, scale = means_of(dy[n], x[n], mean, rest, r, weight, one)
            given = (mean, rest, r, weight, mean_g, scale)
            target = line if past else dx[n]
            differentiate(dy[n], x[n], *given, target, dweight, dbias)
            if past:
                store_past_the_cache(line, dx[n], width)
    fence()


def forward_job(element, one):
    """Compile the forward pass. Numbers: see `forward`."""

    def layer_norm_forward(address):
        forward(array_at(address, (12,), INTEGER), element, one)

    return job(layer_norm_forward)


def backward_job(element, one):
    """Compile the backward pass. Numbers: see `backward`."""

    def layer_norm_backward(address):
        backward(array_at(address, (12,), INTEGER), element, one)

    return job(layer_norm_backward)
