"""Experiments with deep networks, for the part of the book on the gradient.

Both take the normalization as a function, so a chapter can pass its own. All runs are in float64,
and their random numbers come from NumPy, so they're the same on every processor.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

__all__ = ["gradient_by_layer", "train"]

Array = NDArray[np.float64]
Normalize = Callable[[Tensor], Tensor]

DEPTH, WIDTH, ROWS = 30, 64, 16
TRAIN_DEPTH, TRAIN_WIDTH, INPUTS, CLASSES = 4, 32, 16, 4
EXAMPLES, BATCH = 512, 32
OPTIMIZERS = {"SGD": torch.optim.SGD, "Adam": torch.optim.Adam}


def gradient_by_layer(normalize: Normalize, scale: float = 1.0, seed: int = 0) -> Array:
    r"""Propagate a random gradient back through a deep network with random weights.

    Each of the 30 layers computes :math:`\tanh(\operatorname{normalize}(W h))`, with its own
    `W`, whose entries have the standard deviation `scale` / sqrt(64).

    Args:
        normalize: applied to each product `W h`, of shape `(16, 64)`.
        scale: the size of the weights; 1 keeps the size of `W h` near that of `h`.
        seed: determines the weights, the inputs and the gradient at the top.

    Returns:
        For each layer, from first to last, log10 of the norm of the gradient with respect to its
        output, relative to the norm of the gradient at the top. Shape `(30,)`.

    Raises:
        ValueError: `scale` isn't positive.

    Example:
        >>> gradient_by_layer(lambda z: z)[-1].item()  # the top itself
        0.0
    """
    if not scale > 0:
        raise ValueError(f"gradient_by_layer: expected scale to be positive, but got {scale}")
    rng = np.random.default_rng(seed)
    h = torch.tensor(rng.normal(size=(ROWS, WIDTH)), requires_grad=True)
    outputs = []
    for _ in range(DEPTH):
        w = torch.tensor(rng.normal(size=(WIDTH, WIDTH)) * scale / np.sqrt(WIDTH))
        h = torch.tanh(normalize(h @ w.T))
        outputs.append(h)
    top = torch.tensor(rng.normal(size=(ROWS, WIDTH)))
    gradients = torch.autograd.grad(h, outputs, top)
    lengths = [gradient.norm().item() / top.norm().item() for gradient in gradients]
    return np.log10(lengths) + 0.0


def train(
    normalize: Normalize, optimizer: str = "Adam", lr: float = 3e-3, seed: int = 0, steps: int = 200
) -> tuple[float, float]:
    """Train a small network on a synthetic task and return its losses.

    The network has four hidden layers of 32 features, each `relu(normalize(W h))` with `W` as its
    only parameters, and a linear layer to four classes. The classes of the 512 training rows and
    512 test rows (16 normal inputs each) come from a random network with one hidden layer. Each
    step takes a batch of 32. Everything random depends only on `seed`, so two normalizations
    start from the same weights and see the same batches.

    Args:
        normalize: applied to each product `W h`.
        optimizer: "SGD" or "Adam".
        lr: the learning rate.
        seed: determines the data, the weights and the batches.
        steps: the number of training steps, at least 0.

    Returns:
        The mean cross-entropy on all training rows, and on all test rows.

    Raises:
        ValueError: `optimizer` isn't one of these.

    Example:
        >>> training, test = train(lambda z: z, "SGD", steps=0)
        >>> training > 1.0, test > 1.0  # nothing learned yet
        (True, True)
    """
    if optimizer not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise ValueError(f"train: expected optimizer to be one of {known}, but got {optimizer!r}")
    rng = np.random.default_rng(seed)
    inner, outer = rng.normal(size=(INPUTS, 24)), rng.normal(size=(24, CLASSES))
    inputs = rng.normal(size=(2 * EXAMPLES, INPUTS))
    classes = np.argmax(np.tanh(2 * inputs @ inner / np.sqrt(INPUTS)) @ outer, axis=1)
    x, target = torch.tensor(inputs), torch.tensor(classes)
    sizes = [INPUTS] + [TRAIN_WIDTH] * TRAIN_DEPTH + [CLASSES]
    weights = [
        torch.tensor(rng.normal(size=(after, before)) * np.sqrt(2 / before), requires_grad=True)
        for before, after in pairwise(sizes)
    ]

    def loss(rows: Tensor | slice) -> Tensor:
        h = x[rows]
        for w in weights[:-1]:
            h = torch.relu(normalize(h @ w.T))
        return functional.cross_entropy(h @ weights[-1].T, target[rows])

    chosen = OPTIMIZERS[optimizer](weights, lr=lr)
    for _ in range(steps):
        chosen.zero_grad()
        loss(torch.tensor(rng.integers(0, EXAMPLES, BATCH))).backward()
        chosen.step()
    with torch.no_grad():
        return loss(slice(EXAMPLES)).item(), loss(slice(EXAMPLES, None)).item()
