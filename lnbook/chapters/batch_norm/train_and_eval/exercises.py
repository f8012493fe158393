"""The checkers of the chapter on training and evaluation."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running

__all__ = ["check_evaluate", "check_recalibrate", "check_two_updates"]

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
    "Your running_mean keeps a quarter of the old value. In PyTorch, momentum is the share of "
    "the new batch.": _moved(0.0, *MEANS, momentum=1 - MOMENTUM),
    "Your running_mean starts from the first batch. It starts from 0.": _moved(MEANS[0], *MEANS),
    "Your running_mean has the batches in the wrong order.": _moved(0.0, *MEANS[::-1]),
    "Your running_mean has only the first batch in it.": MOMENTUM * MEANS[0],
    "Your running_mean has only the second batch in it.": MOMENTUM * MEANS[1],
    "This is the mean of all four numbers, which momentum=None would give.": float(np.mean(MEANS)),
    "This is the mean of the last batch, which momentum=1 would give.": MEANS[1],
}
"""Wrong running means, by the message that each must get."""

VAR_MISTAKES: Mapping[str, float] = {
    "Your running_var has the biased variances in it. Divide by n - 1.": _moved(1.0, *BIASED),
    "Your running_var keeps a quarter of the old value. In PyTorch, momentum is the share of "
    "the new batch.": _moved(1.0, *UNBIASED, momentum=1 - MOMENTUM),
    "Your running_var starts from 0. It starts from 1.": _moved(0.0, *UNBIASED),
    "Your running_var starts from the first batch. It starts from 1.": _moved(
        UNBIASED[0], *UNBIASED
    ),
    "Your running_var has the batches in the wrong order.": _moved(1.0, *UNBIASED[::-1]),
    "Your running_var has only the first batch in it.": (1 - MOMENTUM) + MOMENTUM * UNBIASED[0],
    "Your running_var has only the second batch in it.": (1 - MOMENTUM) + MOMENTUM * UNBIASED[1],
    "This is the mean of the variances, which momentum=None would give.": float(np.mean(UNBIASED)),
    "Your running_var holds standard deviations. It is moved by variances.": _moved(
        1.0, *np.sqrt(UNBIASED).tolist()
    ),
}
"""Wrong running variances, by the message that each must get."""


@checker
def check_two_updates(running_mean: Any = None, running_var: Any = None) -> str:
    """Check the running statistics after two batches, worked out by hand.

    The layer is `nn.BatchNorm1d(1, momentum=0.25)`, the batches hold 1, 3 and 4, 8.

    Args:
        running_mean: one number. Two decimals are enough.
        running_var: one number.

    Example:
        >>> check_two_updates(running_mean=4.0)
        Not yet. This is the mean of all four numbers, which momentum=None would give.
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
    return "Both are what the layer holds."


def _one_number(given: Any, what: str) -> Array:
    """Read one number, also from an array or a buffer of one."""
    if isinstance(given, Tensor):
        given = given.detach().numpy()
    if isinstance(given, (np.ndarray, list, tuple)) and np.size(given) == 1:
        given = np.reshape(np.asarray(given, dtype=object), ())[()]
    return as_array(given, (), what)


Evaluate = Callable[[nn.Module, Tensor, Tensor, int], float]
EVALUATE_ROWS, EVALUATE_SIZE = 11, 4


class _Probe(nn.Module):
    """Knows whether it was called in training mode."""

    def __init__(self) -> None:
        super().__init__()
        self.modes: list[bool] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> _Probe:
        """A copy tells the original, since a function may work on a copy of the model."""
        probe = _Probe().train(self.training)
        probe.modes = self.modes
        return probe

    def forward(self, x: Tensor) -> Tensor:
        self.modes.append(self.training)
        return x


def _evaluate_case() -> tuple[nn.Sequential, Tensor, Tensor]:
    """A model with statistics unlike those of its test data, and eleven rows of data."""
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
        "It averages the batches, but the last one is smaller. Count the right predictions and "
        "divide once.": np.array(np.mean([share.mean() for share in shares])),
        "It leaves the last, smaller batch out.": np.concatenate(shares[:-1]).mean(),
        "It divides as if all batches were whole. Divide by len(x).": (
            every.sum() / (len(shares) * size)
        ),
        "It returns the number of right predictions. Divide it by the number of rows.": every.sum(),
    }


@checker
def check_evaluate(function: Evaluate) -> str:
    """Check a function that computes the accuracy of a model.

    Calls `function(model, x, y, batch_size)` with a small model that holds a batch norm, in
    training and in evaluation mode, with batches that leave a rest.

    Args:
        function: returns the share of right predictions in evaluation mode, and leaves the model
            as it was.

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
                f"The model came in {was} mode and is left in {now} mode. Remember model.training, "
                "and set it back with model.train(...)."
            )
    return "It gives one result for every batch size, and leaves the model alone."


def _check_how_it_predicts(model: nn.Sequential, before: dict[str, Tensor]) -> None:
    probe = model[-1]
    assert isinstance(probe, _Probe)
    if not probe.modes:
        raise NotYet("Your function never calls the model.")
    moved = [name for name, value in model.state_dict().items() if not value.equal(before[name])]
    if any(probe.modes):
        end = ", and it moved the running statistics." if moved else "."
        raise NotYet(
            f"It predicts in training mode, so that a prediction depends on its batch{end} "
            "Call model.eval() first."
        )
    if moved:
        raise NotYet(f"It changes the model: {', '.join(moved)}. Only look, don't touch.")


Recalibrate = Callable[[nn.Module, Iterable[Tensor]], Any]
SIZES = (2, 5, 3)


def _recalibrate_case() -> tuple[nn.Sequential, list[Tensor]]:
    """Two norms, a linear layer between them, old statistics, and three batches."""
    rng = np.random.default_rng(2015)
    model = nn.Sequential(
        nn.BatchNorm1d(3, momentum=0.3), nn.Linear(3, 2), nn.BatchNorm1d(2, momentum=0.2)
    ).double()
    with torch.no_grad():
        for value in model.parameters():
            value.copy_(torch.from_numpy(rng.normal(1.0, 0.5, tuple(value.shape))))
    for norm in _norms(model):
        for name, old in (("running_mean", -4), ("running_var", 9), ("num_batches_tracked", 7)):
            norm.state_dict()[name].fill_(old)
    return model.eval(), [torch.from_numpy(rng.normal(2.0, 1.5, (size, 3))) for size in SIZES]


def _norms(model: nn.Module) -> list[nn.BatchNorm1d]:
    return [module for module in model.modules() if isinstance(module, nn.BatchNorm1d)]


@torch.no_grad()
def _recalibrated(
    model: nn.Module, batches: Iterable[Tensor], *, reset: bool = True, momentum: Any = None
) -> Array:
    """The statistics of a copy after the batches."""
    model = copy.deepcopy(model).train()
    for norm in _norms(model):
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
    "The running statistics have not moved. They move in training mode only.": (
        lambda model, _batches: _statistics(model)
    ),
    "They are reset, but not moved. Are the batches run in training mode?": (
        lambda model, _batches: _recalibrated(model, [])
    ),
    "The old statistics are still in there. Call reset_running_stats() first: it also "
    "sets the count of batches to 0.": partial(_recalibrated, reset=False),
    "The old statistics are still in there, and the momentum is the old one. Reset them, "
    "and set it to None.": partial(_recalibrated, reset=False, momentum="own"),
    "The start values 0 and 1 are still in there, since the momentum is the old one. With "
    "momentum = None the layer takes the plain mean.": partial(_recalibrated, momentum="own"),
    "They are those of the last batch alone. With momentum = None the layer takes the "
    "plain mean.": partial(_recalibrated, momentum=1.0),
    "They are those of all rows in one batch. Run the batches one by one.": (
        lambda model, batches: _recalibrated(model, [torch.cat(batches)])
    ),
    "They are those of the first batch alone. Does your function return too early?": (
        lambda model, batches: _recalibrated(model, batches[:1])
    ),
}
"""Wrong running statistics, by the message that each must get."""


@checker
def check_recalibrate(function: Recalibrate) -> str:
    """Check a function that gives the batch norms of a model new running statistics.

    Calls `function(model, batches)` with a model of two batch norms, in evaluation mode, and a
    list of three batches.

    Args:
        function: sets the running statistics to the plain mean over the batches, in place, and
            leaves parameters, momentum and mode as they were.

    Example:
        >>> check_recalibrate(lambda model, batches: None)
        Not yet. The running statistics have not moved. They move in training mode only.
    """
    model, batches = _recalibrate_case()
    original = copy.deepcopy(model)
    with running():
        function(model, list(batches))
    for name, value in model.named_parameters():
        if not value.equal(original.get_parameter(name)):
            raise NotYet(f"It changes the parameter {name}. Only statistics may move.")
    judge(
        _statistics(model),
        _recalibrated(original, batches),
        {text: partial(wrong, original, batches) for text, wrong in RECALIBRATE_MISTAKES.items()},
        otherwise="The running statistics are not the plain means over the batches.",
    )
    mine, old = ([norm.momentum for norm in _norms(one)] for one in (model, original))
    if mine != old:
        raise NotYet("The statistics are right. Now give each norm its old momentum back.")
    if any(module.training for module in model.modules()):
        raise NotYet(
            "The statistics are right, but the model is left in training mode. Set it back."
        )
    return "The statistics are the means over the batches; all else is as it was."
