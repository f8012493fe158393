"""The training loop used throughout the book."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor, nn

from lnbook._check import checked_count
from lnbook._check_tensors import check_module
from lnbook.training.progress import progress

__all__ = ["History", "fit"]

Batch = TypeVar("Batch")


@dataclass
class History:
    """The record of a training run.

    Attributes:
        losses: the loss at each step, computed before its update.
        steps: the steps, counted from 1, after which measurements were taken.
        measures: the values of each measure after these steps.

    Example:
        >>> History(losses=[2.5, 1.5]).diverged, History(losses=[2.5, math.inf]).diverged
        (False, True)
    """

    losses: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    measures: dict[str, list[float]] = field(default_factory=dict)

    @property
    def diverged(self) -> bool:
        """Whether the run ended early because of an infinite or NaN loss."""
        return bool(self.losses) and not math.isfinite(self.losses[-1])


def fit(
    model: nn.Module,
    batches: Iterable[Batch],
    loss: Callable[[nn.Module, Batch], Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    schedule: Callable[[int], float] | None = None,
    clip: float | None = None,
    measure: Mapping[str, Callable[[nn.Module], float]] | None = None,
    every: int = 0,
    label: str = "training",
    total: int | None = None,
) -> History:
    """Train a model, one step per batch.

    The model is in training mode during the steps, and in evaluation mode without gradients during
    measurements. It ends in training mode. An infinite or NaN loss ends the run before that step's
    update.

    Args:
        model: the model to train, in place.
        batches: an iterable of batches, for example `minibatches(...)`.
        loss: takes the model and a batch, and returns the loss as a tensor with one element.
        optimizer: optimizer with the model's parameters and the learning rate.
        schedule: takes the step, counted from 1, and returns a factor for the learning rate.
        clip: maximum norm of the gradient of all parameters; None for no clipping.
        measure: functions that take the model and return a number, keyed by name.
        every: number of steps between measurements; 0 to measure only after the last step.
        label: name of the run, shown next to the progress bar.
        total: number of batches, for the progress bar, if `batches` has no length.

    Returns:
        The losses, and what was measured.

    Raises:
        TypeError: `model` is not a module, or `every` is not an integer.
        ValueError: `every` is negative, or `clip` is not positive.

    Example:
        >>> model = nn.Linear(1, 1, bias=False, dtype=torch.float64)
        >>> x = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
        >>> history = fit(
        ...     model,
        ...     [x] * 100,
        ...     lambda model, x: (model(x) - 3 * x).square().mean(),
        ...     torch.optim.SGD(model.parameters(), lr=0.1),
        ...     measure={"slope": lambda model: model(torch.ones(1, 1).double()).item()},
        ... )
        >>> round(history.measures["slope"][-1], 6)
        3.0
    """
    check_module(model, "model", "fit")
    checked_count(every, "every", "fit")
    if clip is not None and not clip > 0:
        raise ValueError(f"fit: expected clip to be positive or None, but got {clip}")
    measure = measure or {}
    history = History(measures={name: [] for name in measure})
    rates = [group["lr"] for group in optimizer.param_groups]
    model.train()
    step = 0
    try:
        for step, batch in enumerate(progress(batches, label, total), start=1):
            share = 1.0 if schedule is None else schedule(step)
            _set_rates(optimizer, [share * rate for rate in rates])
            history.losses.append(_step(model, loss(model, batch), optimizer, clip))
            if history.diverged:
                break
            if every and step % every == 0:
                _measure(model, measure, step, history)
    finally:
        _set_rates(optimizer, rates)
    if measure and history.steps[-1:] != [step]:
        _measure(model, measure, step, history)
    return history


def _set_rates(optimizer: torch.optim.Optimizer, rates: list[float]) -> None:
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = rate


def _step(
    model: nn.Module, loss: Tensor, optimizer: torch.optim.Optimizer, clip: float | None
) -> float:
    value = loss.item()
    if math.isfinite(value):
        optimizer.zero_grad()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return value


def _measure(
    model: nn.Module,
    measure: Mapping[str, Callable[[nn.Module], float]],
    step: int,
    history: History,
) -> None:
    model.eval()
    with torch.no_grad():
        for name, function in measure.items():
            history.measures[name].append(float(function(model)))
    model.train()
    history.steps.append(step)
