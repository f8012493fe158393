"""The checkers of the chapter on batch sizes."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = ["check_accuracy", "check_pair", "check_report"]

Array = NDArray[np.float64]

# The two pairs of the exercise.
FAR, NEAR, EPS = np.array([3.0, 7.0]), np.array([3.0, 3.002]), 1e-5


def _normalized(pair: Array, eps: float, divisor: int = 2) -> Array:
    deviations = pair - pair.mean()
    return np.asarray(deviations / np.sqrt((deviations**2).sum() / divisor + eps))


def _pair_mistakes(pair: Array, what: str) -> dict[str, Array]:
    deviations, variance = pair - pair.mean(), pair.var()
    return {
        f"{what} divides by n - 1. Batch normalization divides by n, here 2.": (
            _normalized(pair, EPS, 1)
        ),
        f"{what} has the signs the wrong way around.": -_normalized(pair, EPS),
        f"{what} is centered, but not yet divided by the root.": deviations,
        f"{what} is divided by the variance. Take its root.": deviations / (variance + EPS),
        f"{what} has eps outside the root. It is added to the variance.": (
            deviations / (np.sqrt(variance) + EPS)
        ),
    }


@checker
def check_pair(far: Any = None, near: Any = None) -> str:
    """Check what batch normalization makes of one feature in a batch of two.

    Args:
        far: for the values 3 and 7, two numbers.
        near: for the values 3 and 3.002, two numbers. In both, eps is 1e-5, and two decimals are
            enough.

    Example:
        >>> check_pair([-1, 1], [-1, 1])
        Not yet. In the second pair eps counts: the variance is 1e-6, a tenth of it.
    """
    without_eps = "In the second pair eps counts: the variance is 1e-6, a tenth of it."
    for answer, pair, what, first in (
        (far, FAR, "Your first pair", {}),
        (near, NEAR, "Your second pair", {without_eps: _normalized(NEAR, 0.0)}),
    ):
        judge(
            as_array(answer, (2,), what),
            _normalized(pair, EPS),
            first | _pair_mistakes(pair, what),
            otherwise=f"{what} is off. Find the mean and the variance of the two first.",
            tolerance=0.006,
        )
    return "Unless two images nearly agree in a feature, only its sign is left."


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


@torch.no_grad()
def _accuracy_mistakes(x: Tensor, y: Tensor, right: float) -> dict[str, Array]:
    in_training, _, _ = _example()
    return {
        "It measures in training mode, with the statistics of the test images. "
        "Call model.eval() first.": (in_training(x).argmax(-1) == y).double().mean().numpy(),
        "That is a count. Divide by the number of images.": np.array(right * len(y)),
        "That is in percent. Return a share, from 0 to 1.": np.array(100 * right),
        "That is the share of errors. Subtract it from 1.": np.array(1 - right),
    }


@checker
def check_accuracy(function: Callable[[nn.Module, Tensor, Tensor], Any]) -> str:
    """Check a function that measures the accuracy of a network.

    Calls `function(model, x, y)` with a network that has a batch normalization and is in training
    mode, and then with one in evaluation mode.

    Args:
        function: returns the share of images that are classified right, one number.

    Example:
        >>> check_accuracy(lambda model, x, y: (model(x).argmax(1) == y).double().mean().item())
        Not yet. It measures in training mode, with the statistics of the test images. Call \
model.eval() first.
    """
    model, x, y = _example()
    before = copy.deepcopy(model.state_dict())
    with running():
        answer = function(model, x, y)
    if isinstance(answer, Tensor):
        answer = answer.detach()
    share, right = as_array(answer, (), "What your function returns"), 27 / 40
    judge(
        share,
        np.array(right),
        _accuracy_mistakes(x, y, right),
        otherwise=f"For the example it should be {right:.4f}, but is {float(share):.4f}.",
        tolerance=1e-6,
    )
    if not all(torch.equal(before[name], value) for name, value in model.state_dict().items()):
        raise NotYet("It changes the network. A test should leave all of it as it was.")
    if not model.training:
        raise NotYet(
            "It leaves a network in evaluation mode that was in training mode. Set it back."
        )
    with running():
        function(model.eval(), x, y)
    if model.training:
        raise NotYet("It leaves a network in training mode that was in evaluation mode.")
    return "The share is right, and the network is left as it was."


def _runs() -> tuple[Array, Array]:
    """Accuracies of 4 rates and 5 seeds: the best rate differs between validation and test."""
    rng = np.random.default_rng(1803)
    validation = 0.9 + 0.01 * rng.normal(size=(4, 5)) + 0.03 * np.array([[0], [2], [1], [-1]])
    test = 0.9 + 0.01 * rng.normal(size=(4, 5)) + 0.03 * np.array([[0], [1], [2], [-1]])
    validation[2, 0], test[0, 1], test[1, 2] = 0.99, 0.99, 0.985  # so that seeds disagree
    return validation, test


def _mean_mistakes(validation: Array, test: Array) -> dict[str, Array]:
    best_of_each_seed = test[validation.argmax(0), np.arange(test.shape[1])]
    return {
        "Your mean is that of the rate which is best on the test images. "
        "Choose by the validation images.": test.mean(1).max(),
        "Your mean takes the best test result of each seed, so the test images choose.": (
            test.max(0).mean()
        ),
        "You choose a rate for each seed. Choose one for all, by its mean.": (
            best_of_each_seed.mean()
        ),
        "Your mean is that of the validation images. Report the test images.": (
            validation.mean(1).max()
        ),
        "Your mean is over all rates. Report the chosen one alone.": test.mean(),
    }


def _spread_mistakes(best: Array, test: Array) -> dict[str, Array]:
    return {
        "Your spread divides by n. A few runs stand for many: divide by n - 1, "
        "with ddof=1.": best.std(),
        "That is the standard error, the spread of the mean. Leave the root of n out.": (
            best.std(ddof=1) / np.sqrt(best.size)
        ),
        "That is the variance. Take its root.": best.var(ddof=1),
        "Your spread is over all rates. Report the chosen one alone.": test.std(ddof=1),
    }


@checker
def check_report(function: Callable[[Array, Array], tuple[float, float]]) -> str:
    """Check a function that chooses a learning rate and reports a result.

    Calls `function(validation, test)`, both of shape `(R, S)`: accuracies for each of R rates and
    S seeds.

    Args:
        function: returns the mean and the standard deviation (with n - 1) of the test accuracy
            over the seeds, at the rate with the best mean accuracy on validation images.

    Example:
        >>> check_report(lambda validation, test: (test.max(0).mean(), test.max(0).std(ddof=1)))
        Not yet. Your mean takes the best test result of each seed, so the test images choose.
    """
    validation, test = _runs()
    with running():
        answer = function(validation.copy(), test.copy())
    mean, spread = as_array(answer, (2,), "What your function returns")
    best = test[validation.mean(1).argmax()]
    judge(
        mean,
        best.mean(),
        _mean_mistakes(validation, test),
        otherwise="Your mean is off: first the best row of validation, then that row of test.",
    )
    judge(
        spread,
        best.std(ddof=1),
        _spread_mistakes(best, test),
        otherwise="Your mean is right, but the spread is off.",
    )
    return "One rate for all seeds, chosen without the test images."
