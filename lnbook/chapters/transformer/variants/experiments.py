"""Variants of the normalized transformer: before and after training, and what a norm can express.

All runs use float64, and their random numbers come from NumPy, so they're the same on every
processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from lnbook.chapters.shared.language_model import held_out, train
from lnbook.data.text import Text
from lnbook.functional import layer_norm, rms_norm
from lnbook.training import fit
from lnbook.transformer import (
    DeepNormBlock,
    PeriLNBlock,
    PostLNBlock,
    PreLNBlock,
    SelfAttention,
    TransformerEncoder,
    deepnorm_init_,
    xavier_init_,
)

__all__ = [
    "VARIANTS",
    "Start",
    "Trained",
    "at_start",
    "margins",
    "train_variant",
    "unselectable",
    "xor_solved",
]

Array = NDArray[np.float64]

VARIANTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "Pre-LN": {"block": PreLNBlock},
        "Post-LN": {"block": PostLNBlock},
        "Peri-LN": {"block": PeriLNBlock},
        "DeepNorm": {"block": DeepNormBlock},
        "QK-norm": {"block": PreLNBlock, "qk_norm": "layer_norm"},
        "RMSNorm": {"block": PreLNBlock, "norm": "rms_norm"},
        "DyT": {"block": PreLNBlock, "norm": "dyt"},
        "none": {"block": PreLNBlock, "norm": "none"},
    }
)

SEQUENCES, TOKENS, WORDS, WIDTH, HEADS = 8, 16, 100, 64, 4
XOR_INPUTS = ((-1.0, -1.0), (-1.0, 1.0), (1.0, -1.0), (1.0, 1.0))
XOR_CLASSES = (0.0, 1.0, 1.0, 0.0)


def _options(variant: str, owner: str) -> dict[str, Any]:
    if variant not in VARIANTS:
        known = ", ".join(VARIANTS)
        raise ValueError(f"{owner}: expected variant to be one of {known}, but got {variant!r}")
    return dict(VARIANTS[variant])


@dataclass(frozen=True)
class Start:
    """Measurements of a stack of L blocks before its first training step.

    Attributes:
        stream: the mean square of the features of the stream, before the first block and after
            each, shape `(L + 1,)`.
        gradients: the Frobenius norm of the gradient of each block's second feed-forward matrix,
            first block first, shape `(L,)`.
        logits: the largest absolute score in each block's attention, before its softmax, shape
            `(L,)`.

    Example:
        >>> start = at_start("QK-norm", 3)
        >>> start.stream.shape, start.gradients.shape, start.logits.shape
        ((4,), (3,), (3,))
    """

    stream: Array
    gradients: Array
    logits: Array


def at_start(
    variant: str, depth: int, seed: int = 0, *, scale: float = 1.0, gain: float = 1.0
) -> Start:
    r"""Run one forward and one backward pass through an untrained stack.

    The stack has width 64, four heads and ReLU, with Xavier initialization (DeepNorm's own for
    DeepNorm). The inputs are 8 sequences of 16 tokens from :math:`\mathcal{N}(0, I)`, and the loss
    is the mean cross-entropy with random targets from a vocabulary of 100 words.

    Args:
        variant: one of `VARIANTS`.
        depth: the number of blocks, L.
        seed: the seed for inputs, targets and weights.
        scale: what the inputs are multiplied by.
        gain: what all weight matrices of the blocks are multiplied by.

    Returns:
        The measurements.

    Raises:
        ValueError: `variant` is unknown, or `depth` is below 1.

    Example:
        >>> at_start("Post-LN", 3).stream.round(3).tolist()[1:]
        [1.0, 1.0, 1.0]
    """
    options = _options(variant, "at_start")
    rng = np.random.default_rng(seed)
    x = scale * torch.from_numpy(rng.normal(size=(SEQUENCES, TOKENS, WIDTH)))
    embedding = torch.from_numpy(rng.normal(size=(WORDS, WIDTH)) / np.sqrt(WIDTH))
    targets = torch.from_numpy(rng.integers(0, WORDS, SEQUENCES * TOKENS))
    encoder = TransformerEncoder(
        options.pop("block"),
        depth,
        WIDTH,
        HEADS,
        dim_feedforward=4 * WIDTH,
        dropout=0.0,
        dtype=torch.float64,
        **options,
    )
    xavier_init_(encoder, rng=rng)
    for layer in _blocks(encoder):
        if isinstance(layer, DeepNormBlock):
            deepnorm_init_(layer, layer.beta, rng=rng)
    with torch.no_grad():
        for parameter in encoder.parameters():
            if parameter.ndim == 2:
                parameter.mul_(gain)
    stream, logits = [x], _watch_logits(encoder)
    for layer in _blocks(encoder):
        layer.register_forward_hook(lambda _m, _i, out: stream.append(out.detach()))
    cross_entropy((encoder(x) @ embedding.T).flatten(0, 1), targets).backward()
    return Start(
        stream=np.array([s.square().mean().item() for s in stream]),
        gradients=np.array([layer.linear2.weight.grad.norm().item() for layer in _blocks(encoder)]),
        logits=np.array(logits),
    )


def _blocks(encoder: TransformerEncoder) -> list[Any]:
    return list(encoder.layers)


def _watch_logits(encoder: TransformerEncoder) -> list[float]:
    """Collect the largest score in each attention layer, in the order of the forward pass."""
    found: list[float] = []

    @torch.no_grad()
    def hook(attention: nn.Module, inputs: tuple[Any, ...], _: Any) -> None:
        assert isinstance(attention, SelfAttention)
        query, key, _value = attention._projections(inputs[0])
        factor = 1.0 if attention.qk_norm == "l2" else attention.head_dim**-0.5
        found.append(factor * (query @ key.transpose(-2, -1)).abs().max().item())

    for layer in _blocks(encoder):
        layer.self_attn.register_forward_hook(hook)
    return found


@dataclass(frozen=True)
class Trained:
    """The result of training one variant.

    Attributes:
        loss: the test loss at the end, infinite if the run diverged.
        logit: the largest absolute score in any attention layer on the test windows; NaN if the
            run diverged.

    Example:
        >>> Trained(loss=2.25, logit=11.5)
        Trained(loss=2.25, logit=11.5)
        >>> Trained(loss=float("inf"), logit=float("nan")).loss  # of a run that broke
        inf
    """

    loss: float
    logit: float


def train_variant(
    text: Text,
    variant: str,
    *,
    layers: int = 4,
    lr: float = 3e-3,
    steps: int = 150,
    seed: int = 0,
    start: str = "pytorch",
    dtype: torch.dtype = torch.float64,
) -> Trained:
    """Train a small character-level language model with one of the variants.

    The stream has width 32, and attention has four heads. Each step uses 8 windows of 32
    characters. Adam runs without warm-up. See `lnbook.chapters.shared.language_model.train`.

    Args:
        text: what to train on.
        variant: one of `VARIANTS`.
        layers: the number of blocks.
        lr: the learning rate.
        steps: how many training steps.
        seed: the seed for initial values and windows.
        start: `"pytorch"`, `"xavier"` or `"deepnorm"`: see `lnbook.chapters.shared.language_model`.
            DeepNorm always uses its own initialization, which is part of the method.
        dtype: the dtype of parameters and computation.

    Returns:
        The test loss and the largest score.

    Raises:
        ValueError: `variant` is unknown, or `train` doesn't accept a value.

    Example:
        >>> ab = torch.tensor([0, 1] * 50)
        >>> run = train_variant(Text("ab", ab, ab), "RMSNorm", layers=1, steps=20)
        >>> run.loss < 0.69 < run.logit
        True
    """
    options = _options(variant, "train_variant")
    run = train(
        text,
        layers=layers,
        width=32,
        heads=4,
        lr=lr,
        steps=steps,
        batch=8,
        length=32,
        seed=seed,
        start="xavier" if variant == "DeepNorm" else start,
        every=0,
        dtype=dtype,
        **options,
    )
    if not np.isfinite(run.final):
        return Trained(loss=float("inf"), logit=float("nan"))
    logits = _watch_logits(run.model.encoder)
    with torch.no_grad():
        run.model(held_out(text, 32)[0])
    return Trained(loss=run.final, logit=max(logits))


def margins(keys: ArrayLike) -> Array:
    r"""Compute the margin by which each key can beat all the others.

    .. math::
        m_i = \max_{\lVert q \rVert_\infty \le 1} \; \min_{j \ne i} \; q \cdot (k_i - k_j)

    This takes one linear program per key. If the margin is positive, some query gives this key the
    highest score. If it's 0, no query selects the key.

    Args:
        keys: shape `(n, d)`, n at least 2.

    Returns:
        The margins, at least 0, shape `(n,)`.

    Raises:
        ValueError: `keys` doesn't have that shape.

    Example:
        >>> margins([[0, 0], [2, 0], [0, 2], [2, 2], [1, 1]]).tolist()
        [2.0, 2.0, 2.0, 2.0, 0.0]
    """
    k = _checked_keys(keys, "margins")
    return np.array([_margin(k, i) for i in range(len(k))])


def _checked_keys(keys: ArrayLike, owner: str) -> Array:
    k = np.asarray(keys, dtype=np.float64)
    if k.ndim != 2 or len(k) < 2:
        raise ValueError(f"{owner}: expected keys of shape (n, d), n at least 2, but got {k.shape}")
    return k


def _margin(k: Array, i: int) -> float:
    from scipy.optimize import linprog  # not at the top, because this import takes a while

    n, d = k.shape
    differences = np.delete(k, i, axis=0) - k[i]  # from this key to the others
    program = linprog(
        c=np.append(np.zeros(d), -1.0),  # the unknowns are the query and the margin
        A_ub=np.hstack([differences, np.ones((n - 1, 1))]),
        b_ub=np.zeros(n - 1),
        bounds=[(-1.0, 1.0)] * d + [(0.0, None)],
    )
    return float(-program.fun) + 0.0


def unselectable(keys: ArrayLike, tolerance: float = 1e-9) -> NDArray[np.bool_]:
    """Find the keys that no query selects by giving them a higher score than all the others.

    These are the keys in the convex hull of the others, including duplicates. A key that's selected
    by itself as the query, or by its difference from the mean, needs no linear program. The other
    keys get one; see `margins`. Source: Brody, Alon and Yahav 2023.

    Args:
        keys: shape `(n, d)`, n at least 2.
        tolerance: the largest margin, as a fraction of the largest entry of the centered keys, at
            which a key counts as unselectable.

    Returns:
        Shape `(n,)`.

    Raises:
        ValueError: `keys` doesn't have that shape.

    Example:
        >>> unselectable([[0, 0], [2, 0], [0, 2], [2, 2], [1, 1]]).tolist()
        [False, False, False, False, True]
    """
    k = _checked_keys(keys, "unselectable")
    centered = k - k.mean(0)
    least = tolerance * np.abs(centered).max()
    hidden = ~(_singled_out(k, k, least) | _singled_out(centered, k, least))
    for i in np.flatnonzero(hidden):
        hidden[i] = _margin(k, int(i)) <= least
    return hidden


def _singled_out(queries: Array, k: Array, least: float) -> NDArray[np.bool_]:
    """Whether each query, rescaled to entries from -1 to 1, selects its key by a margin."""
    largest = np.abs(queries).max(1, keepdims=True)
    scores = queries / np.where(largest > 0, largest, 1.0) @ k.T
    own = np.diagonal(scores).copy()
    np.fill_diagonal(scores, -np.inf)
    return cast("NDArray[np.bool_]", own - scores.max(1) > least)


class _XorNetworks(nn.Module):
    """Several networks, each a linear layer, a norm and a linear layer, trained side by side."""

    def __init__(self, norm: str, width: int, runs: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.norm = norm

        def draw(fan_in: int, *shape: int) -> nn.Parameter:
            bound = fan_in**-0.5
            return nn.Parameter(torch.from_numpy(rng.uniform(-bound, bound, (runs, *shape))))

        self.w1, self.b1 = draw(2, 2, width), draw(2, 1, width)
        self.w2, self.b2 = draw(width, width, 1), draw(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = x @ self.w1 + self.b1
        if self.norm == "layer_norm":
            h = layer_norm(h, h.shape[-1:])
        elif self.norm == "rms_norm":
            h = rms_norm(h, h.shape[-1:], eps=1e-5)
        return (h @ self.w2 + self.b2).squeeze(-1)


def xor_solved(
    width: int, norm: str = "layer_norm", *, runs: int = 20, steps: int = 500, seed: int = 0
) -> NDArray[np.bool_]:
    """Train networks with two linear layers and a norm between them on the four points of XOR.

    Uses Adam with a learning rate of 0.05, all four points in each step, and the initialization of
    `nn.Linear`.

    Args:
        width: how many features are normalized.
        norm: `"layer_norm"` or `"rms_norm"` (with eps 1e-5, without gain and bias), or `"none"`.
        runs: how many networks, each with its own initial values.
        steps: how many training steps.
        seed: the seed for all initial values.

    Returns:
        For each network, whether it classifies all four points correctly, shape `(runs,)`.

    Raises:
        ValueError: `norm` is unknown, or a size is below 1.

    Example:
        >>> xor_solved(2, runs=3, steps=50).tolist()
        [False, False, False]
    """
    if norm not in ("layer_norm", "rms_norm", "none"):
        raise ValueError(
            f"xor_solved: expected norm to be 'layer_norm', 'rms_norm' or 'none', but got {norm!r}"
        )
    if min(width, runs) < 1:
        raise ValueError(
            f"xor_solved: expected width and runs of at least 1, but got {width} and {runs}"
        )
    model = _XorNetworks(norm, width, runs, np.random.default_rng(seed))
    x, y = torch.tensor(XOR_INPUTS).double(), torch.tensor(XOR_CLASSES).double()

    def loss(model: nn.Module, batch: Tensor) -> Tensor:
        scores = model(batch)
        # The sum keeps the networks independent, because Adam treats each parameter by itself.
        return binary_cross_entropy_with_logits(scores, y.expand_as(scores), reduction="sum")

    fit(model, [x] * steps, loss, torch.optim.Adam(model.parameters(), lr=0.05), label="XOR")
    with torch.no_grad():
        right = (model(x) > 0) == (y > 0.5)
    return cast("NDArray[np.bool_]", right.all(-1).numpy())
