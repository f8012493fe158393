"""The checkers of the chapter on batch sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import Verdict, as_array, judge

__all__ = ["check_accuracy", "check_pair", "check_report"]

Array = NDArray[np.float64]

FAR, NEAR, EPS = (3.0, 7.0), (3.0, 3.002), 1e-5
"""The two pairs of the exercise."""


def _pair(values: tuple[float, float], eps: float, divisor: int = 2) -> Array:
    deviations = np.array(values) - np.mean(values)
    normalized: Array = deviations / np.sqrt((deviations**2).sum() / divisor + eps)
    return normalized


def check_pair(far: Any = None, near: Any = None) -> Verdict:
    """Check what batch normalization makes of one feature in a batch of two.

    Args:
        far: for the values 3 and 7, two numbers.
        near: for the values 3 and 3.002, two numbers; eps is 1e-5 in both.

    Returns:
        The verdict; a known mistake is called by its name. Two decimals are enough.

    Example:
        >>> check_pair([-1, 1], [-1, 1])
        Not yet. In the second pair eps counts: the variance is 1e-6, a tenth of it.
    """
    for answer, values, which in ((far, FAR, "first"), (near, NEAR, "second")):
        array = as_array(answer, (2,), f"Your {which} pair")
        if isinstance(array, Verdict):
            return array
        right = _pair(values, EPS)
        deviations = np.array(values) - np.mean(values)
        sigma = np.sqrt((deviations**2).mean())
        mistakes = {
            f"Your {which} pair divides by n - 1. Batch normalization divides by n, here 2.": (
                _pair(values, EPS, 1)
            ),
            f"Your {which} pair has the signs the wrong way around.": -right,
            f"Your {which} pair is centered, but not yet divided by the root.": deviations,
            f"Your {which} pair is divided by the variance. Take its root.": deviations
            / (sigma**2 + EPS),
            f"Your {which} pair has eps outside the root. It is added to the variance.": deviations
            / (sigma + EPS),
        }
        if which == "second":
            told = "In the second pair eps counts: the variance is 1e-6, a tenth of it."
            mistakes = {told: _pair(values, 0.0)} | mistakes
        verdict = judge(
            array,
            right,
            mistakes,
            otherwise=f"Your {which} pair is off. Find the mean and the variance of the two first.",
            tolerance=0.006,
        )
        if verdict is not None:
            return verdict
    return Verdict(True, "Unless two images nearly agree in a feature, only its sign is left.")


def _example() -> tuple[nn.Sequential, Tensor, Tensor]:
    """A network whose running averages differ from any batch, with images and classes."""
    rng = np.random.default_rng(1502)
    model = nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 7)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.tensor(rng.normal(size=tuple(parameter.shape))))
        for name, buffer in model.named_buffers():
            if buffer.ndim:
                values = rng.normal(size=5) if "mean" in name else rng.uniform(0.5, 2.0, 5)
                buffer.copy_(torch.tensor(values))
    x = torch.tensor(rng.normal(1.0, 2.0, (40, 3)))
    with torch.no_grad():
        y = model.eval()(x).argmax(-1)
    y[:13] = (y[:13] + 1) % 7  # right in 27 of 40
    return model.train(), x, y


def check_accuracy(function: Callable[[nn.Module, Tensor, Tensor], Any]) -> Verdict:
    """Check a function that measures the accuracy of a network.

    Calls `function(model, x, y)` with a network that has a batch normalization and is in training
    mode, and then with one in evaluation mode.

    Args:
        function: returns the share of images that are classified right, one number.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_accuracy(lambda model, x, y: (model(x).argmax(1) == y).double().mean().item())
        Not yet. It measures in training mode, with the statistics of the test images. Call \
model.eval() first.
    """
    model, x, y = _example()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        answer = function(model, x, y)
    except Exception as error:
        return Verdict(False, f"Your function raised {type(error).__name__}: {error}.")
    if isinstance(answer, Tensor):
        answer = answer.detach()
    number = as_array(answer, (), "What your function returns")
    if isinstance(number, Verdict):
        return number
    after, mode = model.state_dict(), model.training
    fresh, _, _ = _example()
    with torch.no_grad():
        own = (fresh.train()(x).argmax(-1) == y).double().mean().item()
    changed = any(not torch.equal(before[name], after[name]) for name in before)
    right = 27 / 40
    mistakes = {
        "It measures in training mode, with the statistics of the test images. "
        "Call model.eval() first.": np.array(own),
        "That is a count. Divide by the number of images.": np.array(27.0),
        "That is in percent. Return a share, from 0 to 1.": np.array(100 * right),
        "That is the share of errors. Subtract it from 1.": np.array(1 - right),
    }
    verdict = judge(
        number,
        np.array(right),
        mistakes,
        otherwise=f"For the example it should be {right:.4f}, but is {float(number):.4f}.",
        tolerance=1e-6,
    )
    if verdict is not None:
        return verdict
    if changed:
        return Verdict(False, "It changes the network. A test should leave all of it as it was.")
    if not mode:
        told = "It leaves a network in evaluation mode that was in training mode. Set it back."
        return Verdict(False, told)
    function(model.eval(), x, y)
    if model.training:
        return Verdict(False, "It leaves a network in training mode that was in evaluation mode.")
    return Verdict(True, "The share is right, and the network is left as it was.")


def _runs() -> tuple[Array, Array]:
    """Accuracies of 4 rates and 5 seeds: the best rate differs between validation and test."""
    rng = np.random.default_rng(1803)
    validation = 0.9 + 0.01 * rng.normal(size=(4, 5)) + 0.03 * np.array([[0], [2], [1], [-1]])
    test = 0.9 + 0.01 * rng.normal(size=(4, 5)) + 0.03 * np.array([[0], [1], [2], [-1]])
    validation[2, 0], test[0, 1], test[1, 2] = 0.99, 0.99, 0.985  # so that seeds disagree
    return validation, test


def check_report(function: Callable[[Array, Array], tuple[float, float]]) -> Verdict:
    """Check a function that chooses a learning rate and reports a result.

    Calls `function(validation, test)`, both of shape `(R, S)`: accuracies for each of R rates and
    S seeds.

    Args:
        function: returns the mean and the standard deviation (with n - 1) of the test accuracy
            over the seeds, at the rate with the best mean accuracy on validation images.

    Returns:
        The verdict; a known mistake is called by its name.

    Example:
        >>> check_report(lambda validation, test: (test.max(0).mean(), test.max(0).std(ddof=1)))
        Not yet. Your mean takes the best test result of each seed, so the test images choose.
    """
    validation, test = _runs()
    try:
        answer = function(validation.copy(), test.copy())
    except Exception as error:
        return Verdict(False, f"Your function raised {type(error).__name__}: {error}.")
    given = as_array(answer, (2,), "What your function returns")
    if isinstance(given, Verdict):
        return given
    best = test[validation.mean(1).argmax()]
    every = test[validation.argmax(0), np.arange(test.shape[1])]
    verdict = judge(
        given[:1],
        np.array([best.mean()]),
        {
            "Your mean is that of the rate which is best on the test images. "
            "Choose by the validation images.": np.array([test.mean(1).max()]),
            "Your mean takes the best test result of each seed, so the test images choose.": (
                np.array([test.max(0).mean()])
            ),
            "You choose a rate for each seed. Choose one for all, by its mean.": np.array(
                [every.mean()]
            ),
            "Your mean is that of the validation images. Report the test images.": np.array(
                [validation.mean(1).max()]
            ),
            "Your mean is over all rates. Report the chosen one alone.": np.array([test.mean()]),
        },
        otherwise="Your mean is off: first the best row of validation, then that row of test.",
        tolerance=1e-9,
    )
    if verdict is not None:
        return verdict
    verdict = judge(
        given[1:],
        np.array([best.std(ddof=1)]),
        {
            "Your spread divides by n. A few runs stand for many: divide by n - 1, "
            "with ddof=1.": np.array([best.std()]),
            "That is the standard error, the spread of the mean. Leave the root of n out.": (
                np.array([best.std(ddof=1) / np.sqrt(best.size)])
            ),
            "That is the variance. Take its root.": np.array([best.var(ddof=1)]),
            "Your spread is over all rates. Report the chosen one alone.": np.array(
                [test.std(ddof=1)]
            ),
        },
        otherwise="Your mean is right, but the spread is off.",
        tolerance=1e-9,
    )
    return verdict or Verdict(True, "One rate for all seeds, chosen without the test images.")
