"""The experiments for the chapter on the LSTM cell.

All runs use float64, and their random numbers come from NumPy, so they're the same on every
processor. Nothing is trained: all weights have their initial values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from lnbook.recurrent import LayerNormLSTMCell
from lnbook.training.initialization import initialize_

__all__ = ["Carry", "Spread", "carry", "spread_over_batch"]

Array = NDArray[np.float64]

INPUT_SIZE, HIDDEN_SIZE, EXAMPLES = 8, 32, 8
BATCH_HIDDEN_SIZE = 32
EPS = 1e-5


@dataclass(frozen=True)
class Carry:
    """How a cell state develops along a sequence. Index 0 is the start; shape `(steps + 1,)`.

    Attributes:
        size: the standard deviation of the cell state across its features, averaged over examples.
        share: the distance between the normalized cell states of two runs with different starts,
            relative to that distance at the start.
        kept: the same for the cell states as they're carried over, without normalization.

    Example:
        >>> run = carry("ba", forget_bias=1.0, steps=3)
        >>> run.size.shape, run.share[0].item(), run.kept[0].item()
        ((4,), 1.0, 1.0)
    """

    size: Array
    share: Array
    kept: Array


@torch.no_grad()
def carry(variant: str, forget_bias: float, seed: int = 0, steps: int = 200) -> Carry:
    """Run a cell from two random cell states on the same random inputs.

    The cell has 8 inputs, 32 features and no feedback: its `weight_hh` is 0, so it can remember
    only through its cell state. Inputs and initial cell states are standard normal, for 8
    examples. All random numbers depend only on `seed` and are the same for all variants.

    Args:
        variant: "ba", "per-gate", "carried" or "none".
        forget_bias: what is added to the forget gate.
        seed: the seed for weights, inputs and initial states.
        steps: the number of steps, at least 0.

    Returns:
        What's left of the initial cell state, and its size, before the first step and after each
        step.

    Raises:
        ValueError: the variant is unknown.

    Example:
        >>> run = carry("carried", forget_bias=5.0, steps=3)
        >>> run.size[1:].round(3)
        array([1., 1., 1.])
    """
    rng = np.random.default_rng(seed)
    cell = LayerNormLSTMCell(
        INPUT_SIZE, HIDDEN_SIZE, dtype=torch.float64, variant=variant, forget_bias=forget_bias
    )
    initialize_(cell, rng).get_parameter("weight_hh").zero_()
    inputs = torch.from_numpy(rng.normal(size=(steps, EXAMPLES, INPUT_SIZE)))
    first, second = torch.from_numpy(rng.normal(size=(2, EXAMPLES, HIDDEN_SIZE)))
    h = torch.zeros(EXAMPLES, HIDDEN_SIZE, dtype=torch.float64)
    states = [(h, first), (h, second)]
    cells = [(first, second)]
    for x in inputs:
        states = [cell(x, state) for state in states]
        cells.append((states[0][1], states[1][1]))
    size = [one.std(-1, correction=0).mean().item() for one, _ in cells]
    share = [(_normed(one) - _normed(other)).norm().item() for one, other in cells]
    kept = [(one - other).norm().item() for one, other in cells]
    return Carry(np.array(size), np.array(share) / share[0], np.array(kept) / kept[0])


@dataclass(frozen=True)
class Spread:
    """Standard deviations over a batch at each step, averaged over features; shape `(L,)`.

    Attributes:
        from_input: those of the inputs' contribution to the gates, before its norm.
        from_hidden: those of the hidden state's contribution to the gates, before its norm.
        cell: those of the cell state.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> spread = spread_over_batch(torch.tensor(rng.normal(size=(8, 5, 1))))
        >>> spread.from_input.shape, spread.from_hidden[0].item()  # it starts at zero
        ((8,), 0.0)
    """

    from_input: Array
    from_hidden: Array
    cell: Array


@torch.no_grad()
def spread_over_batch(sequences: Tensor, gain: float = 0.1, seed: int = 0) -> Spread:
    r"""Run an LSTM with batch normalization, and return the standard deviations it divides by.

    .. math::
        a = \operatorname{BN}(W_h h; \gamma) + \operatorname{BN}(W_x x; \gamma) + b, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(\operatorname{BN}(c'; \gamma))

    Each norm computes the mean and variance over the batch at its own step. There are 32 features;
    the bias of the forget gate is 1, and the other biases are 0. Source: Cooijmans et al. 2017.

    Args:
        sequences: inputs, float64 of shape `(L, N, D)`.
        gain: :math:`\gamma`, the same for all features.
        seed: the seed for the weights.

    Returns:
        The standard deviations at every step.

    Raises:
        ValueError: `sequences` doesn't have three dimensions.

    Example:
        >>> sequences = torch.ones(2, 5, 1, dtype=torch.float64)
        >>> spread_over_batch(sequences).from_input  # all sequences are equal
        array([0., 0.])
    """
    if sequences.ndim != 3:
        raise ValueError(
            f"spread_over_batch: expected sequences of shape (L, N, D), "
            f"but got {tuple(sequences.shape)}"
        )
    size = BATCH_HIDDEN_SIZE
    cell = LayerNormLSTMCell(sequences.shape[2], size, dtype=torch.float64, variant="none")
    initialize_(cell, np.random.default_rng(seed))
    w_x, w_h = cell.get_parameter("weight_ih"), cell.get_parameter("weight_hh")
    bias = cell.get_parameter("bias_ih")  # 1 for the forget gate, 0 for the others
    h = c = sequences.new_zeros(sequences.shape[1], size)
    spreads = []
    for x in sequences:
        from_input = functional.linear(x, w_x)
        from_hidden = functional.linear(h, w_h)
        a = _batch_normed(from_hidden, gain) + _batch_normed(from_input, gain) + bias
        i, f, g, o = a.chunk(4, dim=-1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(_batch_normed(c, gain))
        spreads.append([z.std(0, correction=0).mean().item() for z in (from_input, from_hidden, c)])
    return Spread(*np.array(spreads).T)


def _normed(c: Tensor) -> Tensor:
    return functional.layer_norm(c, c.shape[-1:], eps=EPS)


def _batch_normed(z: Tensor, gain: float) -> Tensor:
    return gain * (z - z.mean(0)) / torch.sqrt(z.var(0, correction=0) + EPS)
