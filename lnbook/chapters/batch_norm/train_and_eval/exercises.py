"""Checkers for the chapter on training and evaluation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, run_answer, running

__all__ = ["check_evaluate", "check_noise", "check_recalibrate", "check_two_updates"]

Array = NDArray[np.float64]

FIRST, SECOND = (1.0, 3.0), (4.0, 8.0)
MOMENTUM = 0.25


def _moved(start: float, first: float, second: float, momentum: float = MOMENTUM) -> float:
    for batch in (first, second):
        start = (1 - momentum) * start + momentum * batch
    return start


MEANS = (float(np.mean(FIRST)), float(np.mean(SECOND)))
UNBIASED = (float(np.var(FIRST, ddof=1)), float(np.var(SECOND, ddof=1)))
BIASED = (float(np.var(FIRST)), float(np.var(SECOND)))

MEAN_MISTAKES: Mapping[str, float] = {
    "Your running_mean keeps a quarter of the old value. In PyTorch, momentum is the weight of "
    "the new batch.": _moved(0.0, *MEANS, momentum=1 - MOMENTUM),
    "Your running_mean starts from the first batch. It starts from 0.": _moved(MEANS[0], *MEANS),
    "Your running_mean has the batches in the wrong order.": _moved(0.0, *MEANS[::-1]),
    "Your running_mean includes only the first batch.": MOMENTUM * MEANS[0],
    "Your running_mean includes only the second batch.": MOMENTUM * MEANS[1],
    "This is the mean of all four numbers, which is what momentum=None would give.": float(
        np.mean(MEANS)
    ),
    "This is the mean of the last batch, which is what momentum=1 would give.": MEANS[1],
}
"""Wrong running means, keyed by the message for each."""

VAR_MISTAKES: Mapping[str, float] = {
    "Your running_var uses the biased variances. Divide by n - 1.": _moved(1.0, *BIASED),
    "Your running_var keeps a quarter of the old value. In PyTorch, momentum is the weight of "
    "the new batch.": _moved(1.0, *UNBIASED, momentum=1 - MOMENTUM),
    "Your running_var starts from 0. It starts from 1.": _moved(0.0, *UNBIASED),
    "Your running_var starts from the first batch. It starts from 1.": _moved(
        UNBIASED[0], *UNBIASED
    ),
    "Your running_var has the batches in the wrong order.": _moved(1.0, *UNBIASED[::-1]),
    "Your running_var includes only the first batch.": (1 - MOMENTUM) + MOMENTUM * UNBIASED[0],
    "Your running_var includes only the second batch.": (1 - MOMENTUM) + MOMENTUM * UNBIASED[1],
    "This is the mean of the variances, which is what momentum=None would give.": float(
        np.mean(UNBIASED)
    ),
    "Your running_var averages standard deviations. It should average variances.": _moved(
        1.0, *np.sqrt(UNBIASED).tolist()
    ),
}
"""Wrong running variances, keyed by the message for each."""


@checker
def check_two_updates(running_mean: Any = None, running_var: Any = None) -> str:
    """Check the running statistics after two batches, worked out by hand.

    The layer is `nn.BatchNorm1d(1, momentum=0.25)`; the batches are 1, 3 and 4, 8.

    Args:
        running_mean: one number. Two decimals are enough.
        running_var: one number.

    Example:
        >>> check_two_updates(running_mean=4.0)
        Not yet. This is the mean of all four numbers, which is what momentum=None would give.
    """
    parts = (
        ("running_mean", running_mean, _moved(0.0, *MEANS), MEAN_MISTAKES),
        ("running_var", running_var, _moved(1.0, *UNBIASED), VAR_MISTAKES),
    )
    for name, given, right, mistakes in parts:
        judge(
            _one_number(given, f"Your {name}"),
            np.array(right),
            {text: np.array(wrong) for text, wrong in mistakes.items()},
            otherwise=f"Your {name} is off. Write down the value after each of the two batches.",
            tolerance=0.008,
        )
    return "The layer's running_mean and running_var hold the same two numbers."


def _one_number(given: Any, what: str) -> Array:
    """Read one number, which may be wrapped in an array, a list or a buffer."""
    if isinstance(given, Tensor):
        given = given.detach().numpy()
    if isinstance(given, (np.ndarray, list, tuple)) and np.size(given) == 1:
        given = np.reshape(np.asarray(given, dtype=object), ())[()]
    return as_array(given, (), what)


NOISE_CASES = ((0.1, 2.0), (0.5, 0.3), (1.0, 4.0))


def _noise_mistakes(m: float, v: float) -> dict[str, float]:
    return {
        "That's the noise of a single batch. The running mean averages over several.": v,
        "That's what the last batch alone contributes. The earlier ones count, too.": m**2 * v,
        "You factored (1 - m) out of the variance without squaring it.": m * v,
        "That's the approximation for a small m. The exact formula has 2 - m in it.": m / 2 * v,
        "You factored m out of the variance without squaring it.": v / (2 - m),
        "That's the standard deviation. The exercise asks for the variance.": float(
            np.sqrt(m / (2 - m) * v)
        ),
        "You have m and 2 - m the wrong way around.": (2 - m) / m * v,
    }


@checker
def check_noise(function: Callable[[float, float], Any]) -> str:
    r"""Check the variance of a running mean after many updates.

    Calls `function(m, v)` for several momenta :math:`m` and variances :math:`v` of a batch mean.

    Args:
        function: returns the variance of the running mean, one number.

    Example:
        >>> check_noise(lambda m, v: m * v)
        Not yet. You factored (1 - m) out of the variance without squaring it.
    """
    for m, v in NOISE_CASES:
        answer = run_answer(function, m, v, context=f"m = {m}, v = {v}")
        if answer is ...:
            raise NotYet("Your function returns nothing. Did you forget `return`?")
        number, right = as_array(answer, (), "What your function returns"), m / (2 - m) * v
        judge(
            number,
            right,
            _noise_mistakes(m, v),
            otherwise=f"For m = {m} and v = {v} it should be {right:.4f}, but it's "
            f"{float(number):.4f}.",
        )
    return "With m = 0.1, that's v/19: as noisy as the plain mean of 19 batches."


Evaluate = Callable[[nn.Module, Tensor, Tensor, int], float]
EVALUATE_ROWS, EVALUATE_SIZE = 11, 4


class _Probe(nn.Module):
    """Records the mode in which it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[bool] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> _Probe:
        """Share the record with copies, because an answer may work on a copy of the model."""
        probe = _Probe().train(self.training)
        probe.modes = self.modes
        return probe

    def forward(self, x: Tensor) -> Tensor:
        self.modes.append(self.training)
        return x


def _evaluate_case() -> tuple[nn.Sequential, Tensor, Tensor]:
    """A model whose statistics differ from those of its test data, and eleven rows of data."""
    rng = np.random.default_rng(1502)
    norm, linear = nn.BatchNorm1d(3).double(), nn.Linear(3, 3, bias=False).double()
    norm.state_dict()["running_mean"].copy_(torch.tensor([0.5, -0.5, 0.0]))
    norm.state_dict()["running_var"].copy_(torch.tensor([2.0, 0.5, 1.0]))
    linear.state_dict()["weight"].copy_(torch.eye(3))
    x = torch.from_numpy(rng.normal(size=(EVALUATE_ROWS, 3)))
    y = torch.from_numpy(rng.integers(0, 3, EVALUATE_ROWS))
    return nn.Sequential(norm, linear, _Probe()), x, y


@torch.no_grad()
def _shares(model: nn.Module, x: Tensor, y: Tensor, size: int, training: bool) -> list[Array]:
    model = copy.deepcopy(model).train(training)
    return [
        (model(rows).argmax(dim=1) == right).double().numpy()
        for rows, right in zip(x.split(size), y.split(size), strict=True)
    ]


def _evaluate_mistakes(shares: list[Array], size: int) -> dict[str, Array]:
    every = np.concatenate(shares)
    return {
        "It averages over batches, but the last one is smaller. Count the correct predictions and "
        "divide once.": np.array(np.mean([share.mean() for share in shares])),
        "It leaves out the last, smaller batch.": np.concatenate(shares[:-1]).mean(),
        "It divides as if all batches were full. Divide by len(x).": (
            every.sum() / (len(shares) * size)
        ),
        "It returns the number of correct predictions. Divide by the number of rows.": every.sum(),
    }


@checker
def check_evaluate(function: Evaluate) -> str:
    """Check a function that computes the accuracy of a model.

    Calls `function(model, x, y, batch_size)` with a small model that contains a batch norm, once
    in each mode, and with a last batch that is smaller than the others.

    Args:
        function: returns the accuracy in evaluation mode, and leaves the model as it was.

    Example:
        >>> check_evaluate(lambda model, x, y, batch_size: None)
        Not yet. Your function returns nothing. Did you forget `return`?
    """
    for training in (True, False):
        model, x, y = _evaluate_case()
        model.train(training)
        before = copy.deepcopy(model.state_dict())
        with running():
            given = function(model, x, y, EVALUATE_SIZE)
        if given is None:
            raise NotYet("Your function returns nothing. Did you forget `return`?")
        _check_how_it_predicts(model, before)
        answer = _one_number(given, "The accuracy")
        shares = _shares(model, x, y, EVALUATE_SIZE, training=False)
        right = np.concatenate(shares).mean()
        judge(
            answer,
            right,
            _evaluate_mistakes(shares, EVALUATE_SIZE),
            otherwise=f"The accuracy is off: expected {right:.4f}, but got {float(answer):.4f}.",
            tolerance=1e-6,
        )
        if any(module.training != training for module in model.modules()):
            was, now = ("training", "evaluation")[:: 1 if training else -1]
            raise NotYet(
                f"The model came in {was} mode, and you left it in {now} mode. Remember "
                "model.training, and restore it with model.train(...)."
            )
    return "It gives the same result for every batch size, and the model keeps its mode."


def _check_how_it_predicts(model: nn.Sequential, before: dict[str, Tensor]) -> None:
    probe = model[-1]
    assert isinstance(probe, _Probe)
    if not probe.modes:
        raise NotYet("Your function never calls the model.")
    moved = [name for name, value in model.state_dict().items() if not value.equal(before[name])]
    if any(probe.modes):
        end = ", and it changed the running statistics." if moved else "."
        raise NotYet(
            f"It predicts in training mode, so a prediction depends on its batch{end} "
            "Call model.eval() first."
        )
    if moved:
        raise NotYet(f"It changes the model: {', '.join(moved)}. Leave the model as it is.")


Recalibrate = Callable[[nn.Module, Iterable[Tensor]], Any]
SIZES = (2, 5, 3)


def _recalibrate_case() -> tuple[nn.Sequential, list[Tensor]]:
    """Two norms, one of them nested, with a linear layer between, and three batches."""
    rng = np.random.default_rng(2015)
    nested = nn.Sequential(nn.BatchNorm1d(3, momentum=0.3))
    model = nn.Sequential(nested, nn.Linear(3, 2), nn.BatchNorm1d(2, momentum=0.2)).double()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.from_numpy(rng.normal(1.0, 0.5, tuple(value.shape))))
    for norm in _norms(model):
        for name, old in (("running_mean", -4), ("running_var", 9), ("num_batches_tracked", 7)):
            norm.state_dict()[name].fill_(old)
    return model.eval(), [torch.from_numpy(rng.normal(2.0, 1.5, (size, 3))) for size in SIZES]


def _norms(model: nn.Module, nested: bool = True) -> list[nn.BatchNorm1d]:
    modules = model.modules() if nested else model.children()
    return [module for module in modules if isinstance(module, nn.BatchNorm1d)]


@torch.no_grad()
def _recalibrated(
    model: nn.Module,
    batches: Iterable[Tensor],
    *,
    reset: bool = True,
    momentum: Any = None,
    nested: bool = True,
) -> Array:
    """The statistics of a copy of the model after running it on the batches."""
    model = copy.deepcopy(model).train()
    for norm in _norms(model, nested):
        if reset:
            norm.reset_running_stats()
        if momentum != "own":
            norm.momentum = momentum
    for batch in batches:
        model(batch)
    return _statistics(model)


def _statistics(model: nn.Module) -> Array:
    """The running means and variances of all norms, in one row."""
    states = [norm.state_dict() for norm in _norms(model)]
    parts = [state[name] for state in states for name in ("running_mean", "running_var")]
    return torch.cat(parts).numpy()


RECALIBRATE_MISTAKES: Mapping[str, Callable[[nn.Module, list[Tensor]], Array]] = {
    "The running statistics haven't changed. They change in training mode only.": (
        lambda model, _batches: _statistics(model)
    ),
    "You reset the statistics, but they haven't changed since. Is the model in training mode?": (
        lambda model, _batches: _recalibrated(model, [])
    ),
    "The old statistics still count. Call reset_running_stats() first; it also sets the number "
    "of batches to 0.": partial(_recalibrated, reset=False),
    "The old statistics still count, and the momentum is the old one. Reset the statistics and "
    "set the momentum to None.": partial(_recalibrated, reset=False, momentum="own"),
    "The starting values 0 and 1 still count, because the momentum is the old one. With "
    "momentum = None, the layer takes the plain mean.": partial(_recalibrated, momentum="own"),
    "You left out a norm that's inside another module. model.modules() finds all of them.": (
        partial(_recalibrated, nested=False)
    ),
    "These are the statistics of only the last batch. With momentum = None, the layer takes "
    "the plain mean.": partial(_recalibrated, momentum=1.0),
    "These are the statistics of all rows in one batch. Run the batches one by one.": (
        lambda model, batches: _recalibrated(model, [torch.cat(batches)])
    ),
    "These are the statistics of only the first batch. Does your function return too early?": (
        lambda model, batches: _recalibrated(model, batches[:1])
    ),
}
"""Wrong running statistics, keyed by the message for each."""


@checker
def check_recalibrate(function: Recalibrate) -> str:
    """Check a function that gives a model's batch norms new running statistics.

    Calls `function(model, batches)` with a model that has two batch norms, one of them inside
    another module, once in evaluation mode and once in training mode, and a list of three batches.

    Args:
        function: sets the running statistics to the plain mean over the batches, in place, and
            leaves parameters, momentum and mode as they were.

    Example:
        >>> check_recalibrate(lambda model, batches: None)
        Not yet. The running statistics haven't changed. They change in training mode only.
    """
    for mode in (False, True):
        model, batches = _recalibrate_case()
        _check_recalibrated(function, model.train(mode), batches)
    return "The statistics are the means over the batches, and everything else is as it was."


def _check_recalibrated(function: Recalibrate, model: nn.Module, batches: list[Tensor]) -> None:
    original = copy.deepcopy(model)
    with running():
        function(model, list(batches))
    for name, value in model.named_parameters():
        if not value.equal(original.get_parameter(name)):
            raise NotYet(f"It changes the parameter {name}. Only the statistics should change.")
    judge(
        _statistics(model),
        _recalibrated(original, batches),
        {text: partial(wrong, original, batches) for text, wrong in RECALIBRATE_MISTAKES.items()},
        otherwise="The running statistics aren't the plain means over the batches.",
    )
    mine, old = ([norm.momentum for norm in _norms(one)] for one in (model, original))
    if mine != old:
        raise NotYet("The statistics are right. Now restore the old momentum of each norm.")
    if any(module.training != original.training for module in model.modules()):
        was, left = ("training", "evaluation")[:: 1 if original.training else -1]
        raise NotYet(
            f"The statistics are right, but the model was in {was} mode, and you left it in {left} "
            "mode. Restore its mode."
        )
