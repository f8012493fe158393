"""A small transformer that's trained on five digits and fine-tuned on the other five.

All random numbers come from NumPy. For a given seed, every method gets the same pretrained weights,
the same few images of the new digits, the same new head and the same batches.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.digits import Batch, split
from lnbook.training import fit, initialize_
from lnbook.transformer import PreLNBlock, SelfAttention, TransformerEncoder

__all__ = [
    "METHODS",
    "Classifier",
    "LowRank",
    "Tuned",
    "accuracy",
    "build",
    "fine_tune",
    "norm_parameters",
    "pretrain",
    "trainable",
    "with_low_rank",
]

WIDTH, HEADS, HIDDEN, LAYERS = 32, 4, 64, 3
PIXELS, PATCH = 8, 2
TOKENS = (PIXELS // PATCH) ** 2
CLASSES = 5
BATCH = 32
IMAGES = 100  # how many new digits to train on
WEIGHTS, ORDER, HEAD, CHOICE, ADAPTERS = range(5)  # each use of a seed has its own generator

# The methods. All of them train the head, except "norms, no head".
METHODS = (
    "head",
    "norms, no head",
    "norms",
    "biases",
    "random",
    "LoRA",
    "LoRA and norms",
    "LoRA, rank 3",
    "everything",
)
RANK = 2


class Classifier(nn.Module):
    """A Pre-LN transformer over 16 patches of a digit, with a linear head on the mean token.

    Example:
        >>> Classifier()(torch.zeros(3, 64)).shape
        torch.Size([3, 5])
    """

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Linear(PATCH**2, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        self.encoder = TransformerEncoder(
            PreLNBlock,
            LAYERS,
            WIDTH,
            HEADS,
            dim_feedforward=HIDDEN,
            dropout=0.0,
            activation="gelu",
        )
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores of shape `(N, 5)` for images of shape `(N, 64)`."""
        side = PIXELS // PATCH
        grid = x.reshape(-1, side, PATCH, side, PATCH).transpose(2, 3)
        tokens = self.read(grid.reshape(-1, TOKENS, PATCH**2)) + self.positions.weight
        scores: Tensor = self.head(self.encoder(tokens).mean(1))
        return scores


class LowRank(nn.Module):
    r"""The LoRA term for a matrix: a product of two thin matrices, zero at first.

    .. math::
        W \leftarrow W + B A, \qquad A \in \mathbb{R}^{r \times n}, \; B \in \mathbb{R}^{m \times r}

    Source: Hu et al. 2022, with a scale of 1. It's a parametrization, so the layer itself doesn't
    change.

    Args:
        weight: the matrix, of shape `(m, n)`.
        rank: r.
        rng: draws A.

    Example:
        >>> W = torch.zeros(3, 4)
        >>> term = LowRank(W, rank=2, rng=np.random.default_rng(0))
        >>> term(W).shape, [tuple(part.shape) for part in term.parameters()]
        (torch.Size([3, 4]), [(2, 4), (3, 2)])
    """

    def __init__(self, weight: Tensor, rank: int, rng: np.random.Generator) -> None:
        super().__init__()
        rows, columns = weight.shape
        bound = columns**-0.5
        drawn = torch.from_numpy(rng.uniform(-bound, bound, (rank, columns)))
        self.A = nn.Parameter(drawn.to(weight.dtype))
        self.B = nn.Parameter(torch.zeros(rows, rank, dtype=weight.dtype))

    def forward(self, weight: Tensor) -> Tensor:
        """Return the matrix with the low-rank term added."""
        return weight + self.B @ self.A


def with_low_rank(model: nn.Module, rank: int, rng: np.random.Generator) -> nn.Module:
    """Freeze a model and add trainable low-rank terms to the matrices of its blocks, in place.

    Returns:
        `model`.

    Example:
        >>> model = with_low_rank(build(0), 2, np.random.default_rng(0))
        >>> sum(p.requires_grad for p in model.parameters())  # two for each of four matrices
        24
    """
    model.requires_grad_(False)
    for part in [*model.modules()]:
        name = "in_proj_weight" if isinstance(part, SelfAttention) else "weight"
        in_block = isinstance(part, SelfAttention) or (
            isinstance(part, nn.Linear) and part.in_features != PATCH**2
        )
        if in_block and part is not model.get_submodule("head"):
            weight = part.get_parameter(name)
            nn.utils.parametrize.register_parametrization(part, name, LowRank(weight, rank, rng))
    return model


def build(seed: int, dtype: torch.dtype = torch.float64) -> Classifier:
    """Build an untrained classifier.

    Example:
        >>> torch.equal(build(1).head.weight, build(1).head.weight)
        True
    """
    return initialize_(Classifier().to(dtype), np.random.default_rng([seed, WEIGHTS]))


def _digits(seed: int, part: str, new: bool, dtype: torch.dtype) -> Batch:
    """Return images of the old digits (0 to 4) or the new ones (5 to 9), with classes from 0."""
    x, y = getattr(split(seed), part)
    kept = (y >= CLASSES) == new
    return x[kept].to(dtype), y[kept] % CLASSES


def _batches(
    rng: np.random.Generator, images: Tensor, classes: Tensor, steps: int
) -> Iterator[Batch]:
    for _ in range(steps):
        rows = torch.from_numpy(rng.integers(0, len(images), BATCH))
        yield images[rows], classes[rows]


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    images, classes = batch
    return functional.cross_entropy(model(images), classes)


@torch.no_grad()
def accuracy(model: nn.Module, batch: Batch) -> float:
    """Return the fraction of images that the model classifies correctly.

    Example:
        >>> accuracy(nn.Identity(), (torch.eye(2), torch.tensor([0, 0])))
        0.5
    """
    images, classes = batch
    return float((model(images).argmax(-1) == classes).double().mean())


def pretrain(
    seed: int, steps: int = 300, lr: float = 2e-3, dtype: torch.dtype = torch.float64
) -> Classifier:
    """Train a classifier on the digits 0 to 4, with Adam.

    Example:
        >>> pretrain(0, steps=1).head.out_features
        5
    """
    model = build(seed, dtype)
    rng = np.random.default_rng([seed, ORDER, 0])
    images, classes = _digits(seed, "train", False, dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr)
    fit(model, _batches(rng, images, classes, steps), _loss, optimizer, total=steps)
    return model


def norm_parameters(model: nn.Module) -> list[nn.Parameter]:
    """Return gamma and beta of every norm.

    Example:
        >>> len(norm_parameters(build(0)))  # two norms in each of three blocks, and the final one
        14
    """
    return [
        parameter
        for part in model.modules()
        if hasattr(part, "normalized_shape")
        for parameter in part.parameters(recurse=False)
    ]


def trainable(
    model: Classifier, method: str, seed: int
) -> tuple[dict[str, nn.Parameter], dict[str, Tensor]]:
    """Freeze what a method doesn't train, in place.

    Args:
        model: the model; LoRA adds parameters to it.
        method: one of `METHODS`.
        seed: determines LoRA's matrices and the random choice.

    Returns:
        The trained parameters, keyed by name, and masks for those that are trained only in part.

    Raises:
        ValueError: `method` isn't one of these.

    Example:
        >>> trained, masks = trainable(build(0), "random", 0)
        >>> sum(int(mask.sum()) for mask in masks.values())  # as many as the norms have
        448
    """
    if method not in METHODS:
        known = ", ".join(METHODS)
        raise ValueError(f"trainable: expected method to be one of {known}, but got {method!r}")
    if "LoRA" in method:
        rank = RANK + 1 if "rank 3" in method else RANK
        with_low_rank(model, rank, np.random.default_rng([seed, ADAPTERS]))
    else:
        model.requires_grad_(method in ("everything", "random"))
    model.head.requires_grad_(method != "norms, no head")
    if "norms" in method:
        for parameter in norm_parameters(model):
            parameter.requires_grad_()
    if method == "biases":
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.requires_grad_()
    masks: dict[str, Tensor] = {}
    if method == "random":
        masks = _random_masks(model, seed)
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(name in masks or name.startswith("head"))
    return {n: p for n, p in model.named_parameters() if p.requires_grad}, masks


def _random_masks(model: Classifier, seed: int) -> dict[str, Tensor]:
    """Choose as many parameters as the norms have, among all that aren't in the norms or head."""
    left_out = {id(p) for p in [*norm_parameters(model), *model.head.parameters()]}
    others = {n: p for n, p in model.named_parameters() if id(p) not in left_out}
    count = sum(p.numel() for p in norm_parameters(model))
    total = sum(p.numel() for p in others.values())
    flat = torch.zeros(total, dtype=torch.bool)
    rng = np.random.default_rng([seed, CHOICE])
    flat[torch.from_numpy(rng.choice(total, count, replace=False))] = True
    parts = flat.split([p.numel() for p in others.values()])
    return {name: m.view_as(p) for (name, p), m in zip(others.items(), parts, strict=True)}


class Tuned(NamedTuple):
    """The result of a fine-tuning run.

    Attributes:
        model: the model after the last step.
        parameters: how many numbers were trained.
        validation: accuracy on validation images of the new digits.
        test: accuracy on test images of the new digits.

    Example:
        >>> Tuned(build(0), 165, 0.9, 0.8).test
        0.8
    """

    model: Classifier
    parameters: int
    validation: float
    test: float


def fine_tune(start: Classifier, method: str, seed: int, *, lr: float, steps: int = 200) -> Tuned:
    """Fine-tune a copy of a model on 100 images of the digits 5 to 9, with Adam.

    The head is replaced with a new one.

    Args:
        start: the model, pretrained or not.
        method: one of `METHODS`.
        seed: determines the images, the new head, the batches, and the method's random choices.
        lr: the learning rate.
        steps: the number of steps.

    Raises:
        ValueError: `method` isn't one of these.

    Example:
        >>> fine_tune(build(0), "head", 0, lr=0.01, steps=1).parameters
        165
    """
    model = copy.deepcopy(start)
    initialize_(model.head, np.random.default_rng([seed, HEAD]))
    dtype = model.head.weight.dtype
    images, classes = (part[:IMAGES] for part in _digits(seed, "train", True, dtype))
    trained, masks = trainable(model, method, seed)
    for name, mask in masks.items():
        trained[name].register_hook(lambda grad, mask=mask: grad * mask)
    rng = np.random.default_rng([seed, ORDER, 1])
    optimizer = torch.optim.Adam(trained.values(), lr)
    fit(model, _batches(rng, images, classes, steps), _loss, optimizer, total=steps)
    count = sum(int(masks[n].sum()) if n in masks else p.numel() for n, p in trained.items())
    results = (accuracy(model, _digits(seed, p, True, dtype)) for p in ("validation", "test"))
    return Tuned(model, count, *results)
