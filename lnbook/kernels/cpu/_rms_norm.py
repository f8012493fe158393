r"""RMSNorm in Numba: the loops over one row, and the jobs that divide rows among threads.

.. math::
    y_i = \gamma_i \hat{x}_i, \qquad \hat{x}_i = r x_i, \qquad
    \frac{\partial \mathcal{L}}{\partial x_i} = r \left( g_i - \hat{x}_i \, \overline{g \hat{x}}
    \right), \qquad g_i = \gamma_i \frac{\partial \mathcal{L}}{\partial y_i}

Source: Zhang and Sennrich 2019, eq. 4, and the chain rule.
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
from lnbook.kernels.cpu._rows import inverse_root, mean_of, parameter, scaled_twice

__all__ = ["backward_job", "forward_job"]

INTEGER = np.int64(0)


@fast
def inverse_root_of(x, eps, one):
    square = one - one
    for i in range(len(x)):
        square += widen(x[i]) * widen(x[i])
    return inverse_root(mean_of(square, len(x), one), eps, one)


@fast
def normalize(x, r, weight, y):
    for i in range(len(x)):
        y[i] = narrow(widen(x[i]) * r * weight[i], y[i])


@fast
def forward(numbers, element, one):
    rows, width, height, past = numbers[1], numbers[2], numbers[3], numbers[4]
    eps = type(one)(real(numbers[5]))
    x = array_at(numbers[6], (rows, width), element)
    weight = parameter(numbers[7], width, numbers[8], element, one, one)
    y = array_at(numbers[9], (rows, width), element)
    statistics = array_at(numbers[10], (rows,), one)
    line = np.empty(width, y.dtype)
    while True:
        start = take(numbers) * height
        if start >= rows:
            break
        for n in range(start, min(start + height, rows)):
            r = statistics[n] = inverse_root_of(x[n], eps, one)
            if past:
                normalize(x[n], r, weight, line)
                store_past_the_cache(line, y[n], x[min(n + 1, rows - 1)])
            else:
                normalize(x[n], r, weight, y[n])
    fence()


@fast
def sum_of_products(dy, x, weight, one):
    """Return the sum of g * x over a row."""
    product = one - one
    for i in range(len(x)):
        product += widen(dy[i]) * weight[i] * widen(x[i])
    return product


@fast
def derivatives(dy, x, r, scale, weight):
    """Return an element of dx, and its contribution to dweight."""
    number, upstream = widen(x), widen(dy)
    return r * (upstream * weight - number * scale), upstream * (number * r)


@fast
def differentiate_and_read_on(dy, x, n, following, r, scale, weight, one, dx, dweight):
    """Fill row n of dx, add to the sum, and meanwhile return `sum_of_products` of the next row."""
    dy, next_dy, x, next_x, dx = dy[n], dy[following], x[n], x[following], dx[n]
    product = one - one
    for i in range(len(x)):
        of_x, of_weight = derivatives(dy[i], x[i], r, scale, weight[i])
        dx[i] = narrow(of_x, dx[i])
        dweight[i] += of_weight
        product += widen(next_dy[i]) * weight[i] * widen(next_x[i])
    return product


@fast
def backward(numbers, element, one):
    rows, width, height = numbers[1], numbers[2], numbers[3]
    dy = array_at(numbers[4], (rows, width), element)
    x = array_at(numbers[5], (rows, width), element)
    weight = parameter(numbers[6], width, numbers[7], element, one, one)
    statistics = array_at(numbers[8], (rows,), one)
    dx = array_at(numbers[9], (rows, width), element)
    partial = array_at(numbers[10], ((rows + height - 1) // height, 1, width), one)
    while True:
        piece = take(numbers)
        if piece * height >= rows:
            break
        dweight = partial[piece, 0]
        dweight[:] = 0
        start, last = piece * height, min((piece + 1) * height, rows) - 1
        product = sum_of_products(dy[start], x[start], weight, one)
        for n in range(start, last + 1):
            r = statistics[n]
            scale = scaled_twice(mean_of(product, width, one), r)
            given = (dy, x, n, min(n + 1, last), r, scale, weight, one)
            product = differentiate_and_read_on(*given, dx, dweight)


def forward_job(element, one):
    """Compile the forward pass; `forward` shows which numbers it takes."""

    def rms_norm_forward(address):
        forward(array_at(address, (11,), INTEGER), element, one)

    return job(rms_norm_forward)


def backward_job(element, one):
    """Compile the backward pass; `backward` shows which numbers it takes."""

    def rms_norm_backward(address):
        backward(array_at(address, (11,), INTEGER), element, one)

    return job(rms_norm_backward)
