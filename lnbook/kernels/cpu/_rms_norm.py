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
from lnbook.kernels.cpu._rows import WIDE, buffer, inverse_root, mean_of, parameter, scaled_twice

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
                store_past_the_cache(line, y[n], width)
            else:
                normalize(x[n], r, weight, y[n])
    fence()


@fast
def mean_product(dy, x, weight, one):
    product = one - one
    for i in range(len(x)):
        product += widen(dy[i]) * weight[i] * widen(x[i])
    return mean_of(product, len(x), one)


@fast
def differentiate(dy, x, r, weight, one, dx, dweight):
    scale = scaled_twice(mean_product(dy, x, weight, one), r)
    for i in range(len(x)):
        number, upstream = widen(x[i]), widen(dy[i])
        dx[i] = narrow(r * (upstream * weight[i] - number * scale), dx[i])
        dweight[i] += upstream * (number * r)


@fast
def backward(numbers, element, one):
    rows, width, height, past = numbers[1], numbers[2], numbers[3], numbers[4]
    dy = array_at(numbers[5], (rows, width), element)
    x = array_at(numbers[6], (rows, width), element)
    weight = parameter(numbers[7], width, numbers[8], element, one, one)
    statistics = array_at(numbers[9], (rows,), one)
    dx = array_at(numbers[10], (rows, width), element)
    sums = array_at(numbers[11], ((rows + height - 1) // height, 1, width), one)
    line, lines = np.empty(width, dx.dtype), buffer(width, dx)
    while True:
        piece = take(numbers)
        if piece * height >= rows:
            break
        dweight = sums[piece, 0]
        dweight[:] = 0
        start, stop = piece * height, min((piece + 1) * height, rows)
        if past and width < WIDE:
            for n in range(start, stop, len(lines)):
                end = min(n + len(lines), stop)
                for k in range(n, end):
                    differentiate(dy[k], x[k], statistics[k], weight, one, lines[k - n], dweight)
                store_past_the_cache(lines.ravel(), dx[n:end].ravel(), (end - n) * width)
        else:
            for n in range(start, stop):
                target = line if past else dx[n]
                differentiate(dy[n], x[n], statistics[n], weight, one, target, dweight)
                if past:
                    store_past_the_cache(line, dx[n], width)
    fence()


def forward_job(element, one):
    """Compile the forward pass; `forward` shows which numbers it takes."""

    def rms_norm_forward(address):
        forward(array_at(address, (11,), INTEGER), element, one)

    return job(rms_norm_forward)


def backward_job(element, one):
    """Compile the backward pass; `backward` shows which numbers it takes."""

    def rms_norm_backward(address):
        backward(array_at(address, (12,), INTEGER), element, one)

    return job(rms_norm_backward)
