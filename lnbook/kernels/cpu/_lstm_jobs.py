"""The time loop of a layer-normalized LSTM in Numba, forward and backward, as jobs for threads.

The rows of a batch don't depend on each other, so each thread takes some of them through all time
steps. No thread has to wait for another until the end, when the gradients of the parameters are
added up. Rows are packed as in `lnbook.recurrent.loop`: the first step's rows, then the second's,
and so on.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

from typing import NamedTuple

import numpy as np

from lnbook.kernels.cpu import _lstm_rows as rows_of
from lnbook.kernels.cpu._compile import array_at, fast, job, real, take
from lnbook.kernels.cpu._products import panel_width, product

__all__ = ["BLOCK", "CHUNK", "PER_GATE", "backward_job", "forward_job"]

PER_GATE, JOINT, CARRIED = 0, 1, 2  # kinds of layer; the last two have one norm for all gates
# How many rows go through time together: enough to make each read of the matrix worthwhile.
BLOCK = 32
# The gradients of gains and biases are summed up over about this many rows before they're added to
# a total in float64.
CHUNK = 128

INTEGER = np.int64(0)


class Sizes(NamedTuple):
    """What the jobs know about a layer: entries 1 to 9 of the numbers they're given."""

    pieces: int
    steps: int
    batch: int
    inputs: int
    size: int
    kind: int
    keeps: int
    line: int  # the spacing of rows of gate gradients in memory
    eps: int  # the bits of eps, as a float64


class Layer(NamedTuple):
    """Vectors that both forward and backward read."""

    starts: np.ndarray  # the first row of each step, and the total number of rows
    x: np.ndarray
    h: np.ndarray
    c: np.ndarray
    gain: np.ndarray  # the gain of the gates' norm
    shift: np.ndarray
    input_gain: np.ndarray  # the gain for W_x x, which only a joint norm has
    cell_gain: np.ndarray
    cell_shift: np.ndarray


class Saved(NamedTuple):
    """Vectors for all rows that forward computes and backward reads."""

    output: np.ndarray
    xhat: np.ndarray  # the gates after their norm
    r: np.ndarray  # four per row
    projected: np.ndarray  # W_x x after its norm
    projected_r: np.ndarray
    m: np.ndarray
    mean: np.ndarray  # the mean of m
    m_r: np.ndarray


@fast
def sizes_at(numbers):
    n = numbers
    return Sizes(n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9])


@fast
def layer_at(numbers, first, sizes, one):
    n, size = numbers[first:], sizes.size
    starts = array_at(n[0], (sizes.steps + 1,), INTEGER)
    count = starts[sizes.steps]
    return Layer(
        starts,
        array_at(n[1], (count * sizes.inputs,), one),
        array_at(n[2], (sizes.batch * size,), one),
        array_at(n[3], (sizes.batch * size,), one),
        array_at(n[4], (4 * size,), one),
        array_at(n[5], (4 * size,), one),
        array_at(n[6], (4 * size,), one),
        array_at(n[7], (size,), one),
        array_at(n[8], (size,), one),
    )


@fast
def saved_at(numbers, first, count, size, one):
    n = numbers[first:]
    return Saved(
        array_at(n[0], (count * size,), one),
        array_at(n[1], (count * 4 * size,), one),
        array_at(n[2], (count * 4,), one),
        array_at(n[3], (count * 4 * size,), one),
        array_at(n[4], (count,), one),
        array_at(n[5], (count * size,), one),
        array_at(n[6], (count,), one),
        array_at(n[7], (count,), one),
    )


@fast
def in_panels(count, one):
    """Return a width rounded up to whole panels."""
    width = panel_width(one)
    return (count + width - 1) // width * width


@fast
def row(vector, number, width):
    return vector[number * width : (number + 1) * width]


@fast
def first_row(sizes, piece):
    """Return the first row of a piece of the batch. If possible, pieces consist of whole tiles."""
    tiles = (sizes.batch + 7) // 8
    return min(tiles * piece // sizes.pieces * 8, sizes.batch)


# Forward


@fast
def forward(numbers, one):
    sizes = sizes_at(numbers)
    layer = layer_at(numbers, 10, sizes, one)
    count, size = layer.starts[sizes.steps], sizes.size
    saved = saved_at(numbers, 19, count, size, one)
    columns = in_panels(4 * size, one)
    w_ih = array_at(numbers[27], (columns * sizes.inputs,), one)
    w_hh = array_at(numbers[28], (columns * size,), one)
    h_n = array_at(numbers[29], (sizes.batch * size,), one)
    c_n = array_at(numbers[30], (sizes.batch * size,), one)
    while True:
        piece = take(numbers)
        if piece >= sizes.pieces:
            break
        first, stop = first_row(sizes, piece), first_row(sizes, piece + 1)
        while first < stop:
            last = min(first + BLOCK, stop)
            walk_forward(sizes, layer, saved, w_ih, w_hh, h_n, c_n, first, last, one)
            first = last


@fast
def walk_forward(sizes, layer, saved, w_ih, w_hh, h_n, c_n, first, last, one):
    """Take rows `first` to `last` of the batch through all time steps."""
    size, inputs, joint = sizes.size, sizes.inputs, sizes.kind != PER_GATE
    columns, eps = in_panels(4 * size, one), type(one)(real(sizes.eps))
    gates = np.empty((last - first) * columns, layer.x.dtype)
    added = np.empty((last - first) * columns if joint else 0, layer.x.dtype)
    c = layer.c[first * size : last * size].copy()
    scratch = np.empty(4 * size, layer.x.dtype)
    normed, unkept = np.empty(size, layer.x.dtype), np.empty(size, layer.x.dtype)
    for step in range(sizes.steps):
        start, end = layer.starts[step], layer.starts[step + 1]
        count = min(last, end - start) - first
        if count <= 0:
            break
        q = start + first
        summed = added if joint else gates
        given = (w_ih, inputs, summed, 0, columns, columns, False)
        product(layer.x, q * inputs, inputs, count, *given)
        if step == 0:
            before, h = first * size, layer.h
        else:
            before, h = (layer.starts[step - 1] + first) * size, saved.output
        given = (w_hh, size, gates, 0, columns, columns, not joint)
        product(h, before, size, count, *given)
        going_on = 0
        if step + 1 < sizes.steps:
            going_on = max(0, min(last, layer.starts[step + 2] - end) - first)
        for n in range(count):
            a = gates[n * columns : n * columns + 4 * size]
            if joint:
                b = added[n * columns : n * columns + 4 * size]
                normalize_joint(sizes, layer, saved, q + n, a, b, scratch, eps, one)
            else:
                normalize_each(sizes, layer, saved, q + n, a, scratch, eps, one)
            rows_of.activate(a)
            here = row(c, n, size)
            m = row(saved.m, q + n, size) if sizes.keeps else unkept
            new = row(saved.output, q + n, size)
            rows_of.cell(a, here, m)
            mean, r = rows_of.statistics(m, eps, one)
            if sizes.keeps:
                saved.mean[q + n], saved.m_r[q + n] = mean, r
            if sizes.kind != CARRIED:
                rows_of.copy(m, here)
            rows_of.shifted(m, mean, r, layer.cell_gain, layer.cell_shift, normed)
            if sizes.kind == CARRIED:
                rows_of.copy(normed, here)
            rows_of.output(a, normed, new)
            if n >= going_on:
                rows_of.copy(new, row(h_n, first + n, size))
                rows_of.copy(here, row(c_n, first + n, size))


@fast
def normalize_each(sizes, layer, saved, q, a, scratch, eps, one):
    """Turn a row of summed inputs into gates before their nonlinearities, with a norm per gate."""
    size = sizes.size
    xhat = row(saved.xhat, q, 4 * size) if sizes.keeps else scratch
    for k in range(4):
        gate = row(a, k, size)
        mean, r = rows_of.statistics(gate, eps, one)
        rows_of.normalize(gate, mean, r, row(xhat, k, size))
        if sizes.keeps:
            saved.r[4 * q + k] = r
    rows_of.affine(xhat, layer.gain, layer.shift, a)


@fast
def normalize_joint(sizes, layer, saved, q, a, b, scratch, eps, one):
    """Do the same with two norms over all gates, one of W_h h and one of W_x x."""
    width = 4 * sizes.size
    xhat = row(saved.xhat, q, width) if sizes.keeps else scratch
    mean, r = rows_of.statistics(a, eps, one)
    rows_of.normalize(a, mean, r, xhat)
    rows_of.affine(xhat, layer.gain, layer.shift, a)
    if sizes.keeps:
        saved.r[4 * q] = r
    mean, r = rows_of.statistics(b, eps, one)
    xhat = row(saved.projected, q, width) if sizes.keeps else scratch
    rows_of.normalize(b, mean, r, xhat)
    rows_of.add_scaled(xhat, layer.input_gain, a)
    if sizes.keeps:
        saved.projected_r[q] = r


# Backward


class Upstream(NamedTuple):
    """The gradients of the results, as vectors."""

    output: np.ndarray
    h_n: np.ndarray
    c_n: np.ndarray


class Found(NamedTuple):
    """The gradients to compute, as vectors; each piece has its own sums."""

    h: np.ndarray
    c: np.ndarray
    summed: np.ndarray  # of W_h h, or of the sum with W_x x if the norm comes after it
    projected: np.ndarray  # of W_x x if it has a norm of its own; otherwise equal to `summed`
    sums: np.ndarray  # float64: gain, shift, input gain, input shift; cell gain, cell shift


class Scratch(NamedTuple):
    """Scratch memory of one piece, as vectors."""

    dh: np.ndarray  # the gradient of h from the following step
    dc: np.ndarray
    gates: np.ndarray
    da: np.ndarray
    xhat: np.ndarray  # m, normalized
    normed: np.ndarray
    dnormed: np.ndarray
    dm: np.ndarray
    c: np.ndarray
    sums: np.ndarray  # the sums over a chunk


@fast
def backward(numbers, one):
    sizes = sizes_at(numbers)
    layer = layer_at(numbers, 10, sizes, one)
    count, size, pieces = layer.starts[sizes.steps], sizes.size, sizes.pieces
    saved = saved_at(numbers, 19, count, size, one)
    w_hh = array_at(numbers[27], (4 * size * in_panels(size, one),), one)
    whole, joint = sizes.batch * size, sizes.kind != PER_GATE
    upstream = Upstream(
        array_at(numbers[28], (count * size,), one),
        array_at(numbers[29], (whole,), one),
        array_at(numbers[30], (whole,), one),
    )
    summed = array_at(numbers[33], (count * sizes.line,), one)
    found = Found(
        array_at(numbers[31], (whole,), one),
        array_at(numbers[32], (whole,), one),
        summed,
        array_at(numbers[34], (count * sizes.line,), one) if joint else summed,
        array_at(numbers[35], (pieces * 18 * size,), 0.0),
    )
    while True:
        piece = take(numbers)
        if piece >= pieces:
            break
        first, stop = first_row(sizes, piece), first_row(sizes, piece + 1)
        scratch = scratch_for(sizes, min(stop - first, BLOCK), layer.x, one)
        while first < stop:
            last = min(first + BLOCK, stop)
            walk_back(sizes, layer, saved, upstream, found, w_hh, scratch, piece, first, last, one)
            first = last


@fast
def scratch_for(sizes, height, like, one):
    size, width, dtype = sizes.size, 4 * sizes.size, like.dtype
    return Scratch(
        np.empty(height * in_panels(size, one), dtype),
        np.empty(height * size, dtype),
        np.empty(width, dtype),
        np.empty(width, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.empty(size, dtype),
        np.zeros(18 * size, dtype),
    )


@fast
def walk_back(sizes, layer, saved, upstream, found, w_hh, scratch, piece, first, last, one):
    """Take rows `first` to `last` of the batch back through all time steps."""
    size, filled, following = sizes.size, 0, 0
    narrow = in_panels(size, one)
    for step in range(sizes.steps - 1, -1, -1):
        start, end = layer.starts[step], layer.starts[step + 1]
        count = min(last, end - start) - first
        if count <= 0:
            continue
        q = start + first
        for n in range(following, count):  # these sequences end here
            rows_of.copy(
                row(upstream.h_n, first + n, size), scratch.dh[n * narrow : n * narrow + size]
            )
            rows_of.copy(row(upstream.c_n, first + n, size), row(scratch.dc, n, size))
        following = count
        for n in range(count):
            dh = scratch.dh[n * narrow : n * narrow + size]
            rows_of.add_to(row(upstream.output, q + n, size), dh)
            step_back(sizes, layer, saved, found, scratch, step, q + n, first + n, n, one)
        given = (w_hh, 4 * size, scratch.dh, 0, narrow, narrow, False)
        product(found.summed, q * sizes.line, sizes.line, count, *given)
        filled += count
        if filled >= CHUNK or step == 0:
            add_sums(scratch, row(found.sums, piece, 18 * size))
            filled = 0
    for n in range(last - first):
        rows_of.copy(scratch.dh[n * narrow : n * narrow + size], row(found.h, first + n, size))
        rows_of.copy(row(scratch.dc, n, size), row(found.c, first + n, size))


@fast
def add_sums(scratch, total):
    """Add the sums over a chunk's rows to their total, and start over."""
    for i in range(len(total)):
        total[i] += scratch.sums[i]
        scratch.sums[i] = 0


@fast
def step_back(sizes, layer, saved, found, scratch, step, q, member, n, one):
    """Take one row back through one step, up to the gradients of its summed inputs.

    The row's number is `q` among all rows, `member` in the batch, and `n` in the block of rows.
    """
    size = sizes.size
    recompute(sizes, layer, saved, scratch, step, q, member)
    dh = scratch.dh[n * in_panels(size, one) : n * in_panels(size, one) + size]
    dc = row(scratch.dc, n, size)
    rows_of.back_through_output(dh, scratch.gates, scratch.normed, scratch.da, scratch.dnormed)
    if sizes.kind == CARRIED:
        rows_of.add_to(dc, scratch.dnormed)
    sums, gain = scratch.sums[16 * size : 17 * size], layer.cell_gain
    r, shift_sums = saved.m_r[q], scratch.sums[17 * size :]
    rows_of.back_through_norm(
        scratch.dnormed, scratch.xhat, r, gain, scratch.dm, sums, shift_sums, one
    )
    if sizes.kind != CARRIED:
        rows_of.add_to(dc, scratch.dm)
    rows_of.back_through_cell(scratch.dm, scratch.gates, scratch.c, scratch.da, dc)

    width, place, sums = 4 * size, q * sizes.line, scratch.sums
    grads, xhat = found.summed[place : place + width], row(saved.xhat, q, width)
    if sizes.kind == PER_GATE:
        for k in range(4):
            part = slice(k * size, (k + 1) * size)
            dgain, dshift = row(sums, k, size), row(sums, 4 + k, size)
            given = (scratch.da[part], xhat[part], saved.r[4 * q + k], layer.gain[part])
            rows_of.back_through_norm(*given, grads[part], dgain, dshift, one)
        return
    dgain, dshift = row(sums, 0, width), row(sums, 1, width)
    rows_of.back_through_norm(
        scratch.da, xhat, saved.r[4 * q], layer.gain, grads, dgain, dshift, one
    )
    grads = found.projected[place : place + width]
    xhat, r = row(saved.projected, q, width), saved.projected_r[q]
    dgain, dshift = row(sums, 2, width), row(sums, 3, width)
    rows_of.back_through_norm(scratch.da, xhat, r, layer.input_gain, grads, dgain, dshift, one)


@fast
def recompute(sizes, layer, saved, scratch, step, q, member):
    """Recompute the gates, LN(m) and the previous cell, which is faster than saving them."""
    size, width = sizes.size, 4 * sizes.size
    rows_of.affine(row(saved.xhat, q, width), layer.gain, layer.shift, scratch.gates)
    if sizes.kind != PER_GATE:
        rows_of.add_scaled(row(saved.projected, q, width), layer.input_gain, scratch.gates)
    rows_of.activate(scratch.gates)
    rows_of.normalize(row(saved.m, q, size), saved.mean[q], saved.m_r[q], scratch.xhat)
    rows_of.affine(scratch.xhat, layer.cell_gain, layer.cell_shift, scratch.normed)
    if step == 0:
        rows_of.copy(row(layer.c, member, size), scratch.c)
        return
    p = layer.starts[step - 1] + member
    if sizes.kind == CARRIED:
        given = (row(saved.m, p, size), saved.mean[p], saved.m_r[p])
        rows_of.shifted(*given, layer.cell_gain, layer.cell_shift, scratch.c)
    else:
        rows_of.copy(row(saved.m, p, size), scratch.c)


def forward_job(one):
    """Compile the forward pass; its numbers are the counter, `Sizes` and addresses."""

    def lstm_forward(address):
        forward(array_at(address, (31,), INTEGER), one)

    return job(lstm_forward)


def backward_job(one):
    """Compile the backward pass; its numbers are the counter, `Sizes` and addresses."""

    def lstm_backward(address):
        backward(array_at(address, (36,), INTEGER), one)

    return job(lstm_backward)
