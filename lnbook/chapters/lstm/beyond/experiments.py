"""The experiments for the chapter on norms around `nn.LSTM`, the GRU and recurrent dropout.

All runs are in float64, and their random numbers come from NumPy, so they're the same on every
processor.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.digits import split
from lnbook.recurrent import LayerNormGRU, LayerNormLSTM
from lnbook.training import fit, initialize_, minibatches

__all__ = ["PLACES", "RowReader", "rows_of_digits", "share_left", "train", "untrained"]

Array = NDArray[np.float64]

PLACES = ("none", "factor", "concatenated", "per direction", "inside")
ROWS, WIDTH, HIDDEN, LAYERS, CLASSES = 8, 8, 16, 2, 10
WEIGHTS, BATCHES = range(2)  # each use of a seed has its own generator


class RowReader(nn.Module):
    """Bidirectional recurrent layers that read images row by row, and a linear layer.

    The linear layer's input is the mean of the top layer's outputs over the steps.

    Args:
        place: where the norms are. "none": nowhere; "concatenated": after each layer, over both
            directions together; "per direction": after each layer, with separate means and
            variances for the directions; "inside": in the cells, as in Ba, Kiros and Hinton 2016;
            "factor": nowhere, but each layer's output is multiplied by a constant, which `adjust_`
            sets.
        cell: "LSTM" or "GRU".

    Shape:
        Input: `(N, 8, 8)`. Output: `(N, 10)`.

    Example:
        >>> RowReader("concatenated", "LSTM")(torch.zeros(3, 8, 8)).shape
        torch.Size([3, 10])
    """

    def __init__(self, place: str, cell: str) -> None:
        super().__init__()
        if place not in PLACES or cell not in ("LSTM", "GRU"):
            raise ValueError(
                f"RowReader: expected a place from {PLACES} and 'LSTM' or 'GRU', "
                f"but got {place!r} and {cell!r}"
            )
        kinds: dict[str, type[nn.Module]] = {"LSTM": nn.LSTM, "GRU": nn.GRU}
        if place == "inside":
            kinds = {"LSTM": LayerNormLSTM, "GRU": LayerNormGRU}
        self.layers = nn.ModuleList(
            kinds[cell](2 * HIDDEN if k else WIDTH, HIDDEN, batch_first=True, bidirectional=True)
            for k in range(LAYERS)
        )
        sizes = {"concatenated": (2 * HIDDEN,), "per direction": (HIDDEN,)}
        self.norms = nn.ModuleList(
            nn.LayerNorm(sizes[place]) if place in sizes else nn.Identity() for _ in range(LAYERS)
        )
        self.place, self.factors = place, [1.0] * LAYERS
        self.out = nn.Linear(2 * HIDDEN, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return the logits."""
        for number in range(LAYERS):
            x = self._layer(number, x)
        logits: Tensor = self.out(x.mean(1))
        return logits

    @torch.no_grad()
    def adjust_(self, x: Tensor) -> RowReader:
        """Set the factors so that each layer's output has standard deviation 1 for this input."""
        for number in range(LAYERS):
            self.factors[number] = 1.0
            self.factors[number] = 1.0 / self._layer(number, x).std(correction=0).item()
            x = self._layer(number, x)
        return self

    def _layer(self, number: int, x: Tensor) -> Tensor:
        x = self.factors[number] * self.layers[number](x)[0]
        if self.place == "per direction":
            halves: Tensor = self.norms[number](x.unflatten(-1, (2, HIDDEN)))
            return halves.flatten(-2)
        normed: Tensor = self.norms[number](x)
        return normed


def rows_of_digits(seed: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the digits as sequences of eight rows: 1197 training images and 450 test images.

    Example:
        >>> [tuple(part.shape) for part in rows_of_digits(0)[1]]
        [(450, 8, 8), (450,)]
    """
    parts = split(seed)
    (train_x, train_y), (test_x, test_y) = parts.train, parts.test
    size = (ROWS, WIDTH)
    return (train_x.unflatten(1, size), train_y), (test_x.unflatten(1, size), test_y)


def untrained(place: str, seed: int, cell: str = "LSTM") -> RowReader:
    """Return an untrained `RowReader` in float64, with its factors (if any) adjusted.

    Wherever the norms are, the biases of recurrent layers start at 0, except that the forget gates
    of LSTMs start at 1. (PyTorch's layers would draw them at random.)

    Example:
        >>> model = untrained("factor", seed=0)
        >>> all(factor > 1.0 for factor in model.factors)  # an LSTM's outputs are small
        True
    """
    model = RowReader(place, cell).double()
    initialize_(model, np.random.default_rng([seed, WEIGHTS]))
    for name, parameter in model.named_parameters():
        if "bias_ih" in name or "bias_hh" in name:
            parameter.data.zero_()
        if cell == "LSTM" and "bias_ih" in name:
            parameter.data.chunk(4)[1].fill_(1.0)
    if place == "factor":
        model.adjust_(rows_of_digits(seed)[0][0])
    return model


def train(place: str, seed: int, cell: str = "LSTM", steps: int = 100) -> float:
    """Train a `RowReader` on the digits with Adam at a rate of 0.01, and return its test accuracy.

    A seed determines the split, the initial matrices and the batches of 32 images, so runs with the
    same seed differ only in their norms. See `untrained` for the initial values.

    Args:
        place: where the norms are, as in `RowReader`.
        seed: the seed.
        cell: "LSTM" or "GRU".
        steps: the number of updates.

    Example:
        >>> 0.0 <= train("none", seed=0, steps=1) <= 1.0
        True
    """
    training, (test_x, test_y) = rows_of_digits(seed)
    model = untrained(place, seed, cell)
    rng = np.random.default_rng([seed, BATCHES])
    fit(
        model,
        minibatches(rng, *training, batch_size=32, steps=steps),
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), lr=0.01),
        clip=1.0,
        label=f"{cell}, {place}",
        total=steps,
    )
    with torch.no_grad():
        return float((model(test_x).argmax(1) == test_y).double().mean())


def share_left(place: str, p: float, steps: int, seed: int = 0, features: int = 20_000) -> Array:
    """Return the fraction of a state's features that still depend on the start, at each step.

    Nothing is forgotten, and new content is added to every feature at each step. The two
    runs start from different states but are otherwise the same.

    Args:
        place: where dropout is applied: to the "candidate", which is about to be added, or to the
            "state".
        p: the probability of dropping a feature.
        steps: the number of steps.
        seed: the seed for starts, masks and content.
        features: the number of features.

    Returns:
        Fractions from 0 to 1, shape `(steps + 1,)`; the first is 1.

    Raises:
        ValueError: the place is unknown.

    Example:
        >>> share_left("candidate", 0.5, steps=3)
        array([1., 1., 1., 1.])
    """
    if place not in ("candidate", "state"):
        raise ValueError(f"share_left: expected 'candidate' or 'state', but got {place!r}")
    rng = np.random.default_rng(seed)
    pair = rng.normal(size=(2, features))
    shares = [1.0]
    for _ in range(steps):
        kept = (rng.random(features) >= p) / (1.0 - p)  # scaled up, as in dropout
        content = np.tanh(rng.normal(size=features))
        pair = pair + kept * content if place == "candidate" else kept * (pair + content)
        shares.append(float((np.abs(pair[0] - pair[1]) > 1e-9).mean()))
    return np.array(shares)
