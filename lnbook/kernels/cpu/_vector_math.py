r"""Sigmoid and tanh without branches, so that Numba turns loops over them into vector instructions.

Both need :math:`e^z` for :math:`z \le 0`. With :math:`n` the integer nearest to
:math:`z / \ln 2` and :math:`r = z - n \ln 2`,

.. math::
    e^z = 2^n + 2^n q, \qquad q = e^r - 1, \qquad |r| \le \tfrac{1}{2} \ln 2,

where :math:`2^n` is put together from its bits and :math:`q` is a polynomial. Keeping :math:`q`
separate from the 1 makes tanh accurate near 0 too. The error is at most 3 units in the last place,
as long as the result is a normal number; a sigmoid below 2e-38 in float32 or 4e-308 in float64 is
0.

Source of the method and of the float32 coefficients: Moshier's Cephes library, `expf.c`. The
coefficients in float64 are those of the Taylor series.
"""

# mypy: ignore-errors
# ruff: noqa: ANN001, ANN202

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

__all__ = ["sigmoid", "tanh"]

# Operations can't be reordered here, or there'd be no point in splitting ln 2 into two parts.
in_order = {"fastmath": {"contract"}, "error_model": "numpy"}

F, D = np.float32, np.float64


@intrinsic
def _integer_bits(typing, value):
    """Return the bits of a float as an integer of the same size."""
    integer = {types.float32: types.int32, types.float64: types.int64}[value]

    def generate(context, builder, signature, args):
        return builder.bitcast(args[0], context.get_value_type(integer))

    return integer(value), generate


@intrinsic
def _power_of_two(typing, shifted):
    """Return 2 to the n, where n is in the last bits of `shifted`, a float."""
    fraction = {types.float32: 23, types.float64: 52}[shifted]

    def generate(context, builder, signature, args):
        integer = ir.IntType(shifted.bitwidth)
        bias = ((1 << (shifted.bitwidth - fraction - 2)) - 1) << fraction
        moved = builder.shl(builder.bitcast(args[0], integer), integer(fraction))
        return builder.bitcast(builder.add(moved, integer(bias)), args[0].type)

    return shifted(shifted), generate


@intrinsic
def _with_sign_of(typing, magnitude, other):
    """Return a nonnegative number with the sign of another one."""

    def generate(context, builder, signature, args):
        integer = ir.IntType(magnitude.bitwidth)
        sign = integer(1 << (magnitude.bitwidth - 1))
        number, source = (builder.bitcast(arg, integer) for arg in args)
        rest = builder.and_(number, builder.not_(sign))
        return builder.bitcast(builder.or_(rest, builder.and_(source, sign)), args[0].type)

    return magnitude(magnitude, other), generate


def parts_of_exp(z):
    """Return 2 to the n, and the same times q, for z from the lower limit to 0."""
    raise NotImplementedError("only for compiled code")


@overload(parts_of_exp, jit_options=in_order)
def _parts_of_exp(z):
    return _parts32 if z == types.float32 else _parts64


def _parts32(z):
    # Adding 1.5 * 2**23 rounds to an integer, which ends up in the last bits.
    shifted = z * F(1.4426950408889634) + F(12582912.0)
    n = shifted - F(12582912.0)
    r = (z - n * F(0.693359375)) - n * F(-2.12194440e-4)
    q = F(1.9875691500e-4)
    q = q * r + F(1.3981999507e-3)
    q = q * r + F(8.3334519073e-3)
    q = q * r + F(4.1665795894e-2)
    q = q * r + F(1.6666665459e-1)
    q = q * r + F(5.0000001201e-1)
    power = _power_of_two(shifted)
    return power, power * (q * r * r + r)


def _parts64(z):
    shifted = z * 1.4426950408889634 + 6755399441055744.0
    n = shifted - 6755399441055744.0
    r = (z - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10
    q = 1.0 / 6227020800.0
    q = q * r + 1.0 / 479001600.0
    q = q * r + 1.0 / 39916800.0
    q = q * r + 1.0 / 3628800.0
    q = q * r + 1.0 / 362880.0
    q = q * r + 1.0 / 40320.0
    q = q * r + 1.0 / 5040.0
    q = q * r + 1.0 / 720.0
    q = q * r + 1.0 / 120.0
    q = q * r + 1.0 / 24.0
    q = q * r + 1.0 / 6.0
    q = q * r + 0.5
    power = _power_of_two(shifted)
    return power, power * (q * r * r + r)


def least_exponent(z):
    """Return the number below which e to the z is too small for a normal number."""
    raise NotImplementedError("only for compiled code")


@overload(least_exponent)
def _least_exponent(z):
    return (lambda z: F(-87.0)) if z == types.float32 else (lambda z: D(-708.0))


@njit(**in_order)
def sigmoid(x):
    """Return 1 / (1 + exp(-x)), for a float32 or float64."""
    zero, one = type(x)(0), type(x)(1)
    z = -abs(x)
    least = least_exponent(z)
    power, rest = parts_of_exp(least if z < least else z)  # NaN stays NaN
    small = zero if z < least else power + rest
    return (one if x >= zero else small) / (one + small)


@njit(**in_order)
def tanh(x):
    """Return the hyperbolic tangent of a float32 or float64."""
    one = type(x)(1)
    z = type(x)(-2) * abs(x)
    least = type(x)(-40)
    power, rest = parts_of_exp(least if z < least else z)
    below = (power - one) + rest  # exp(z) - 1
    return _with_sign_of(-below / (type(x)(2) + below), x)
