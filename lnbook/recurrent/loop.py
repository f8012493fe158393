"""The readable time loop: one step after another, differentiable by autograd to any order.

Sequences of different lengths are packed as in `torch.nn.utils.rnn.PackedSequence`: the rows of the
first time step, then those of the second, and so on, with the longest sequence first. In a batch of
equal lengths, every time step has the same number of rows.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from lnbook._check import checked_eps
from lnbook.recurrent._autocast import no_autocast
from lnbook.recurrent._given import check_layer
from lnbook.recurrent.parameters import checked_variant
from lnbook.recurrent.steps import STEPS, Parameters

__all__ = ["final_rows", "plain_layer"]


def plain_layer(
    variant: str,
    rows: Tensor,
    batch_sizes: Sequence[int],
    h: Tensor,
    c: Tensor,
    parameters: Parameters,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """Run one layer of an LSTM over its sequences, step by step, ignoring autocast.

    Args:
        variant: "ba", "per-gate", "carried" or "none".
        rows: inputs of shape `(sum(batch_sizes), input_size)`, packed as described above.
        batch_sizes: number of rows at each time step, never increasing.
        h: initial hidden states, of shape `(batch_sizes[0], hidden_size)`.
        c: initial cell states, with the shape of `h`.
        parameters: tensors keyed by name, as in `LayerNormLSTMCell`.
        eps: value added to each variance, finite and at least 0.

    Returns:
        `(output, h_n, c_n)`: the hidden states of all steps, packed like `rows`, and the states
        after each sequence's own last step, with the shape of `h`.

    Raises:
        TypeError: an argument is not a tensor, or `eps` is not a real number.
        KeyError: a weight is missing.
        RuntimeError: the shapes, dtypes or devices don't match.
        ValueError: there is no such variant, or `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": torch.zeros(4, 1), "weight_hh": torch.zeros(4, 1)}
        >>> c = torch.tensor([[8.0], [8.0]])
        >>> rows = torch.zeros(3, 1)  # a sequence of two steps and one of a single step
        >>> plain_layer("none", rows, [2, 1], torch.zeros(2, 1), c, parameters)[2]
        tensor([[2.],
                [4.]])
    """
    variant = checked_variant(variant, "plain_layer")
    eps = checked_eps(eps, "plain_layer")
    check_layer("plain_layer", rows, batch_sizes, h, c, parameters, variant)
    step = STEPS[variant]
    hidden, cells = [], []
    with no_autocast(rows.device):
        for x in rows.split(list(batch_sizes)):
            h, c = step(x, h[: len(x)], c[: len(x)], parameters, eps)
            hidden.append(h)
            cells.append(c)
    return torch.cat(hidden), final_rows(hidden), final_rows(cells)


def final_rows(states: Sequence[Tensor]) -> Tensor:
    """Return the last state of each sequence, given the states of all time steps.

    Args:
        states: one tensor of shape `(batch_sizes[t], hidden_size)` per time step.

    Returns:
        New tensor of shape `(batch_sizes[0], hidden_size)`.

    Example:
        >>> final_rows([torch.tensor([[1.0], [2.0]]), torch.tensor([[3.0]])])
        tensor([[3.],
                [2.]])
    """
    # Sequences that end early come last in the batch.
    counts = [len(state) for state in states] + [0]
    ends = [
        state[after:]
        for state, here, after in zip(states, counts, counts[1:], strict=False)
        if after < here or after == 0
    ]
    return torch.cat(ends[::-1])
