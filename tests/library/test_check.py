"""The argument checks that the whole package shares."""

import math

import numpy as np
import pytest
import torch

from lnbook._check import checked_bool, checked_count, checked_eps, checked_real, checked_shape


@pytest.mark.parametrize("eps", [0, 0.0, 1, 1e-5, np.float32(0.5), np.int64(2)])
def test_real_numbers(eps):
    for value in (checked_eps(eps, "f"), checked_real(eps, "eps", "f")):
        assert type(value) is float
        assert value == eps
    assert checked_real(-1.5, "momentum", "f") == -1.5


@pytest.mark.parametrize("value", [True, "1", None, 1j, torch.tensor(1.0)])
def test_what_is_no_real_number_is_refused(value):
    with pytest.raises(TypeError, match="^f: expected eps to be a real number, but got "):
        checked_eps(value, "f")
    with pytest.raises(TypeError, match="^f: expected m to be a real number, but got "):
        checked_real(value, "m", "f")


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_what_is_not_finite_is_refused(value):
    with pytest.raises(ValueError, match="^f: expected eps to be finite and at least 0, but got "):
        checked_eps(value, "f")
    with pytest.raises(ValueError, match="^f: expected m to be finite, but got "):
        checked_real(value, "m", "f")


def test_a_negative_eps_is_refused():
    with pytest.raises(ValueError, match=r"^f: expected eps .* at least 0, but got -1e-300"):
        checked_eps(-1e-300, "f")


def test_shapes():
    shape = checked_shape([np.int64(3), 0, 2], "f")
    assert shape == (3, 0, 2)
    assert all(type(size) is int for size in shape)


@pytest.mark.parametrize("shape", [(), (-1,), (2, -1), (-3, 4)])
def test_shapes_without_a_size_or_with_a_negative_one_are_refused(shape):
    with pytest.raises(RuntimeError, match="^f: expected normalized_shape to have at least one"):
        checked_shape(shape, "f")


@pytest.mark.parametrize("size", [True, 2.0, "2", None])
def test_what_is_no_integer_is_refused(size):
    expected = "^f: expected normalized_shape to contain integers, but got"
    with pytest.raises(TypeError, match=expected):
        checked_shape((3, size), "f")
    with pytest.raises(TypeError, match="^f: expected n to be an integer, but got"):
        checked_count(size, "n", "f")


def test_counts():
    assert checked_count(0, "n", "f") == 0
    assert checked_count(3, "n", "f", least=3) == 3
    assert type(checked_count(np.int64(3), "n", "f")) is int
    with pytest.raises(ValueError, match="^f: expected n to be at least 0, but got -1"):
        checked_count(-1, "n", "f")
    with pytest.raises(ValueError, match="^f: expected n to be at least 3, but got 2"):
        checked_count(2, "n", "f", least=3)


def test_bools():
    assert checked_bool(True, "b", "f") is True
    assert checked_bool(False, "b", "f") is False
    for value in (1, None, "yes", torch.tensor(True)):
        with pytest.raises(TypeError, match="^f: expected b to be True or False, but got "):
            checked_bool(value, "b", "f")
