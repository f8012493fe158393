"""The experiments for the chapter on training LSTMs: two tasks, and gradients through time.

All random numbers come from NumPy, and each use of a seed has its own generator: two variants with
the same seed start from the same matrices and see the same batches. Runs are in float64 unless you
ask for a different dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.adding import BASELINE, adding_problem
from lnbook.data.digits import split
from lnbook.recurrent import LayerNormLSTM
from lnbook.training import fit, initialize_, minibatches

__all__ = [
    "FORMS",
    "LastStep",
    "Norms",
    "Run",
    "Task",
    "adding",
    "digits",
    "norms_over_steps",
    "set_gain_",
    "train",
]

Array = NDArray[np.float64]
Batch = tuple[Tensor, ...]

FORMS = ("pixels", "binary", "with a constant")
TEST, WEIGHTS, BATCHES = range(3)  # each use of a seed has its own generator
TEST_EXAMPLES = 500


class LastStep(nn.Module):
    """An LSTM whose hidden state after the last step goes through a linear layer.

    Args:
        inputs: features of the input, D.
        hidden: features of the states, H.
        outputs: numbers per output.
        variant: "ba", "per-gate", "carried" or "none".
        forget_bias: initial value of the forget gates' bias.

    Shape:
        Input: `(N, L, D)`. Output: `(N, outputs)`.

    Example:
        >>> LastStep(2, 4, 1, "ba")(torch.zeros(3, 7, 2)).shape
        torch.Size([3, 1])
    """

    def __init__(
        self, inputs: int, hidden: int, outputs: int, variant: str, forget_bias: float = 1.0
    ) -> None:
        super().__init__()
        self.lstm = LayerNormLSTM(
            inputs, hidden, batch_first=True, variant=variant, forget_bias=forget_bias
        )
        self.out = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the output of the linear layer for the last hidden state."""
        output, _ = self.lstm(x)
        answer: Tensor = self.out(output[:, -1])
        return answer


@dataclass(frozen=True)
class Task:
    """What a model has to learn, and how it is evaluated.

    Attributes:
        name: "adding" or "digits".
        outputs: how many numbers a model outputs per sequence.
        test: sequences of shape `(N, L, D)`, float64, and their answers.
        batches: maps a batch size and a number of steps to batches like `test`.
        loss: maps a model's outputs and the answers to the loss, averaged over the examples.
        score: maps a model's outputs and the answers to the score: the accuracy for digits; for
            adding, the mean squared error, relative to the error of always answering 1.

    Example:
        >>> task = adding(length=6)
        >>> x, answers = next(task.batches(32, 1))
        >>> task.name, task.outputs, tuple(x.shape), tuple(answers.shape)
        ('adding', 1, (32, 6, 2), (32, 1))
    """

    name: str
    outputs: int
    test: Batch
    batches: Callable[[int, int], Iterator[Batch]] = field(repr=False)
    loss: Callable[[Tensor, Tensor], Tensor] = field(repr=False)
    score: Callable[[Tensor, Tensor], float] = field(repr=False)


def adding(seed: int = 0, length: int = 50) -> Task:
    """Return the adding problem: new sequences in each batch, and 500 test sequences.

    Args:
        seed: the seed for the sequences.
        length: steps per sequence, L, at least 2.

    Raises:
        ValueError: `length` is below 2; raised only when sequences are drawn.

    Example:
        >>> task = adding(length=6)
        >>> [tuple(part.shape) for part in task.test]
        [(500, 6, 2), (500, 1)]
        >>> task.score(torch.ones(500, 1), task.test[1]) > 0.9  # always 1
        True
    """

    def batches(batch_size: int, steps: int) -> Iterator[Batch]:
        rng = np.random.default_rng([seed, BATCHES])
        for _ in range(steps):
            yield adding_problem(rng, batch_size, length)

    test = adding_problem(np.random.default_rng([seed, TEST]), TEST_EXAMPLES, length)
    return Task("adding", 1, test, batches, functional.mse_loss, _share_of_baseline)


def digits(seed: int = 0, form: str = "pixels") -> Task:
    """Return the digits, read one pixel per step: 1197 training images and 450 test images.

    Args:
        seed: the seed for the split and for the order of the images.
        form: "pixels" for just the pixel, from 0 to 1; "binary" for 1 where it is above 0;
            "with a constant" for the pixel and, as a second feature, 1 at every step.

    Raises:
        ValueError: `form` is unknown.

    Example:
        >>> [tuple(part.shape) for part in digits().test]
        [(450, 64, 1), (450,)]
        >>> digits(form="binary").test[0].unique()
        tensor([0., 1.], dtype=torch.float64)
    """
    if form not in FORMS:
        raise ValueError(f"digits: expected form to be one of {FORMS}, but got {form!r}")
    parts = split(seed)
    train, test = ((_sequence(x, form), y) for x, y in (parts.train, parts.test))

    def batches(batch_size: int, steps: int) -> Iterator[Batch]:
        rng = np.random.default_rng([seed, BATCHES])
        return minibatches(rng, *train, batch_size=batch_size, steps=steps)

    return Task("digits", 10, test, batches, functional.cross_entropy, _accuracy)


def _sequence(x: Tensor, form: str) -> Tensor:
    pixels = (x > 0).to(x.dtype) if form == "binary" else x
    if form == "with a constant":
        return torch.stack([pixels, torch.ones_like(pixels)], dim=-1)
    return pixels.unsqueeze(-1)


def _share_of_baseline(outputs: Tensor, answers: Tensor) -> float:
    return functional.mse_loss(outputs, answers).item() / BASELINE


def _accuracy(outputs: Tensor, answers: Tensor) -> float:
    return (outputs.argmax(1) == answers).double().mean().item()


@torch.no_grad()
def set_gain_(model: nn.Module, gain: float) -> None:
    """Set all gains of all layer-normalized LSTMs in a model, in place.

    Args:
        model: any model.
        gain: the new value.

    Example:
        >>> model = LastStep(1, 2, 1, "ba")
        >>> set_gain_(model, 0.1)
        >>> model.lstm.norm_c_weight_l0.data
        tensor([0.1000, 0.1000])
    """
    for part in model.modules():
        if isinstance(part, LayerNormLSTM):
            for name, parameter in part.named_parameters():
                if name.startswith("norm_") and "_weight" in name:
                    parameter.fill_(gain)


@dataclass
class Run:
    """The results of a training run.

    Attributes:
        model: the trained model.
        train_losses: the loss of each step on its batch, before the update.
        steps: the steps after which the model was tested.
        scores: the task's score on its test sequences after each of these steps.

    Example:
        >>> run = train(adding(length=4), "ba", steps=4, hidden=3, every=2)
        >>> len(run.train_losses), run.steps, len(run.scores)
        (4, [2, 4], 2)
    """

    model: LastStep
    train_losses: list[float] = field(repr=False)
    steps: list[int]
    scores: list[float]


def train(
    task: Task,
    variant: str,
    *,
    lr: float = 0.01,
    gain: float = 1.0,
    forget_bias: float = 1.0,
    seed: int = 0,
    steps: int = 300,
    hidden: int = 32,
    batch_size: int = 32,
    every: int = 0,
    clip: float | None = 1.0,
    dtype: torch.dtype = torch.float64,
) -> Run:
    """Train an LSTM on a task with Adam.

    Args:
        task: made by `adding` or `digits`.
        variant: "ba", "per-gate", "carried" or "none".
        lr: the learning rate.
        gain: initial value of the norms' gains.
        forget_bias: initial value of the forget gates' biases.
        seed: the seed for the weights.
        steps: the number of updates.
        hidden: features of the states.
        batch_size: sequences per batch.
        every: test after this many updates; 0 to test once, at the end.
        clip: the largest norm allowed for the gradient of all parameters; None for no limit.
        dtype: the dtype of the model and the sequences.

    Returns:
        The model and its scores.

    Raises:
        ValueError: `LayerNormLSTM` or `lnbook.training` rejects an argument.

    Example:
        >>> run = train(adding(length=4), "ba", steps=60, hidden=8, every=30)
        >>> run.steps, run.scores[-1] < 1.0
        ([30, 60], True)
    """
    x, y = (_cast(part, dtype) for part in task.test)
    model = LastStep(x.shape[2], hidden, task.outputs, variant, forget_bias).double()
    initialize_(model, np.random.default_rng([seed, WEIGHTS])).to(dtype)
    set_gain_(model, gain)
    history = fit(
        model,
        (tuple(_cast(part, dtype) for part in batch) for batch in task.batches(batch_size, steps)),
        lambda model, batch: task.loss(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), lr=lr),
        clip=clip,
        measure={"score": lambda model: task.score(model(x), y)},
        every=every,
        label=f"{task.name}, {variant}",
        total=steps,
    )
    return Run(model, history.losses, history.steps, history.measures["score"])


def _cast(part: Tensor, dtype: torch.dtype) -> Tensor:
    return part.to(dtype) if part.is_floating_point() else part


@dataclass(frozen=True)
class Norms:
    """Norms at each step of a sequence, as medians over the examples; each of shape `(L,)`.

    Attributes:
        hidden: the norms of the hidden state.
        cell: the norms of the cell state.
        hidden_gradient: the norms of the gradient of an example's loss with respect to its hidden
            state.
        cell_gradient: the norms of the gradient of an example's loss with respect to its cell
            state, through everything that depends on it, including the hidden state of the same
            step.

    Example:
        >>> norms = norms_over_steps(LastStep(2, 4, 1, None).double(), adding(length=5))
        >>> norms.hidden.shape, norms.hidden_gradient.shape
        ((5,), (5,))
    """

    hidden: Array
    cell: Array
    hidden_gradient: Array
    cell_gradient: Array


def norms_over_steps(model: LastStep, task: Task, examples: int = 100) -> Norms:
    """Run a model forward and backward, and measure its states and their gradients.

    Args:
        model: a model returned by `train`.
        task: the task that provides test sequences and the loss.
        examples: how many of the test sequences to use.

    Returns:
        The norms at every step.

    Example:
        >>> task = adding(length=5)
        >>> norms = norms_over_steps(LastStep(2, 4, 1, "ba").double(), task)
        >>> norms.cell_gradient.shape
        (5,)
    """
    dtype = model.out.weight.dtype
    x, y = (_cast(part[:examples], dtype) for part in task.test)
    cell = model.lstm.cell()
    states: list[tuple[Tensor, Tensor]] = []
    for x_t in x.unbind(1):
        states.append(cell(x_t, states[-1] if states else None))
    # A sum over the examples, so that each keeps its own gradient.
    loss = len(x) * task.loss(model.out(states[-1][0]), y)
    columns = []
    for tensors in zip(*states, strict=True):
        columns.append(_lengths(tensors))
        columns.append(_lengths(torch.autograd.grad(loss, tensors, retain_graph=True)))
    return Norms(columns[0], columns[2], columns[1], columns[3])


def _lengths(tensors: tuple[Tensor, ...]) -> Array:
    return np.array([tensor.detach().norm(dim=-1).median().item() for tensor in tensors])
