"""A small denoiser of digits, conditioned on class and noise level in several ways.

Weights, batches and noise come from NumPy, so they're the same on every processor. All runs with
the same seed see the same batches, and their models start from the same weights, except for what a
variant changes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.digits import Digits, load_digits
from lnbook.layers import AdaLayerNorm, LayerNorm
from lnbook.training import initialize_
from lnbook.transformer import SelfAttention

__all__ = [
    "VARIANTS",
    "Block",
    "Denoiser",
    "Run",
    "accuracy",
    "build",
    "first_gradients",
    "flow_loss",
    "sample",
    "train",
    "trained_parts",
]

Array = NDArray[np.float64]

# What each variant changes in an adaLN-Zero block.
VARIANTS: dict[str, dict[str, Any]] = {
    "adaLN-Zero": {},
    "adaLN-Zero, default init": {"zero_init": False},
    "adaLN": {"gate": False},
    "adaLN, default init": {"gate": False, "zero_init": False},
    "added": {"adaptive": False, "gate": False},
    "added, wider": {"adaptive": False, "gate": False, "hidden": 169},
    "added, zero gate": {"adaptive": False},
}
WIDTH, HEADS, HIDDEN, LAYERS = 32, 4, 64, 4
PIXELS, PATCH, FREQUENCIES = 8, 2, 8
TOKENS, CLASSES, BATCH = (PIXELS // PATCH) ** 2, 10, 32
WEIGHTS, MODULATION, BATCHES, TEST, START = range(5)  # each use of a seed has its own generator


class Block(nn.Module):
    r"""A transformer block of DiT, or one of its variants.

    .. math::
        x \leftarrow x + \mathrm{gate} \odot F(\hat{x} \odot (1 + \mathrm{scale}) + \mathrm{shift})

    Source: Peebles and Xie 2023.

    Args:
        adaptive: whether shift, scale and gate depend on the condition. Otherwise the norm has its
            own parameters, and so does the gate, which starts at zero.
        gate: whether there's a gate.
        zero_init: whether shift, scale and gate start at zero.
        hidden: width of the feed-forward network.

    Example:
        >>> block, x = Block(), torch.randn(2, 16, 32)
        >>> torch.equal(block(x, torch.randn(2, 32)), x)
        True
    """

    def __init__(
        self,
        *,
        adaptive: bool = True,
        gate: bool = True,
        zero_init: bool = True,
        hidden: int = HIDDEN,
    ) -> None:
        super().__init__()
        self.adaptive, self.gate = adaptive, gate
        if adaptive:
            options: dict[str, Any] = {"gate": gate, "zero_init": zero_init}
            self.norm1: nn.Module = AdaLayerNorm(WIDTH, WIDTH, **options)
            self.norm2: nn.Module = AdaLayerNorm(WIDTH, WIDTH, **options)
        else:
            self.norm1, self.norm2 = LayerNorm(WIDTH, 1e-6), LayerNorm(WIDTH, 1e-6)
            self.gates = nn.Parameter(torch.zeros(2, WIDTH)) if gate else None
        self.attention = SelfAttention(WIDTH, HEADS)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, hidden), nn.GELU(), nn.Linear(hidden, WIDTH))

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """Return the new stream, with the shape of `x`, `(N, L, 32)`."""
        branches = ((self.norm1, self.attention), (self.norm2, self.mlp))
        for place, (norm, branch) in enumerate(branches):
            y = norm(x, condition) if self.adaptive else norm(x)
            if not self.gate:
                x = x + branch(y)
            elif self.adaptive:
                x = x + y[1] * branch(y[0])
            else:
                assert self.gates is not None
                x = x + self.gates[place] * branch(y)
        return x


class Denoiser(nn.Module):
    """A transformer that predicts the velocity of noisy digits, from class and noise level.

    Args:
        variant: a name in `VARIANTS`.
        layers: the number of blocks.

    Raises:
        ValueError: there's no variant with this name.

    Example:
        >>> model = Denoiser("adaLN-Zero")
        >>> model(torch.zeros(3, 64), torch.tensor([0.1, 0.5, 0.9]), torch.tensor([7, 7, 1])).shape
        torch.Size([3, 64])
    """

    def __init__(self, variant: str, layers: int = LAYERS) -> None:
        super().__init__()
        if variant not in VARIANTS:
            known = ", ".join(VARIANTS)
            raise ValueError(f"Denoiser: expected one of {known}, but got {variant!r}")
        options = VARIANTS[variant]
        self.adaptive: bool = options.get("adaptive", True)
        self.read = nn.Linear(PATCH**2, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        self.classes = nn.Embedding(CLASSES, WIDTH)
        self.time = nn.Sequential(
            nn.Linear(2 * FREQUENCIES, WIDTH), nn.SiLU(), nn.Linear(WIDTH, WIDTH)
        )
        self.blocks = nn.ModuleList(Block(**options) for _ in range(layers))
        self.norm: nn.Module = LayerNorm(WIDTH, 1e-6)
        if self.adaptive:
            zero_init = options.get("zero_init", True)
            self.norm = AdaLayerNorm(WIDTH, WIDTH, zero_init=zero_init)
        self.write = nn.Linear(WIDTH, PATCH**2)

    def forward(self, x: Tensor, t: Tensor, y: Tensor) -> Tensor:
        """Return the velocity, of shape `(N, 64)`, at noise levels `t` for classes `y`."""
        condition = self.condition(t, y)
        stream = self.read(_patches(x)) + self.positions.weight
        if not self.adaptive:
            stream = stream + condition[:, None]
        condition = functional.silu(condition)
        for block in self.blocks:
            stream = block(stream, condition)
        stream = self.norm(stream, condition) if self.adaptive else self.norm(stream)
        return _image(self.write(stream))

    def condition(self, t: Tensor, y: Tensor) -> Tensor:
        """Return the sum of the embeddings of noise level and class, of shape `(N, 32)`."""
        angles = math.pi * t[:, None] * torch.arange(1, FREQUENCIES + 1).to(t)
        embedded: Tensor = self.time(torch.cat([angles.cos(), angles.sin()], dim=1))
        of_class: Tensor = self.classes(y)
        return embedded + of_class


def _patches(x: Tensor) -> Tensor:
    """Cut images `(N, 64)` into tokens `(N, 16, 4)` of 2 x 2 pixels."""
    side = PIXELS // PATCH
    grid = x.reshape(-1, side, PATCH, side, PATCH).transpose(2, 3)
    return grid.reshape(-1, TOKENS, PATCH**2)


def _image(tokens: Tensor) -> Tensor:
    """Assemble tokens `(N, 16, 4)` into images `(N, 64)`."""
    side = PIXELS // PATCH
    grid = tokens.reshape(-1, side, side, PATCH, PATCH).transpose(2, 3)
    return grid.reshape(-1, PIXELS**2)


def build(variant: str, seed: int, layers: int = LAYERS) -> Denoiser:
    """Build a denoiser in float64; with the same seed, variants share all the weights they can.

    Example:
        >>> one, other = build("adaLN-Zero", 0), build("added", 0)
        >>> torch.equal(one.blocks[3].mlp[0].weight, other.blocks[3].mlp[0].weight)
        True
    """
    model = Denoiser(variant, layers).double()
    for number, part in enumerate((model.read, model.positions, model.classes, model.time)):
        initialize_(part, np.random.default_rng([seed, WEIGHTS, number]))
    initialize_(model.write, np.random.default_rng([seed, WEIGHTS, 4]))
    for number, block in enumerate(model.blocks, start=3):
        for offset, name in enumerate(("attention", "mlp")):
            rng = np.random.default_rng([seed, WEIGHTS, 2 * number + offset])
            initialize_(block.get_submodule(name), rng)
    rng = np.random.default_rng([seed, MODULATION])
    for module in model.modules():
        if isinstance(module, AdaLayerNorm) and not module.zero_init:
            initialize_(module.modulation, rng)
    return model


def flow_loss(model: nn.Module, x: Tensor, t: Tensor, noise: Tensor, y: Tensor) -> Tensor:
    r"""Return the mean squared error of the predicted velocity.

    .. math::
        \left\lVert f\big((1 - t) x + t \varepsilon,\, t,\, y\big) - (\varepsilon - x)
        \right\rVert^2

    Source: Lipman et al. 2023, flow matching with straight paths.

    Args:
        model: takes noisy images, noise levels and classes.
        x: images with pixels from -1 to 1, shape `(N, 64)`.
        t: noise levels from 0 (the image) to 1 (the noise), shape `(N,)`.
        noise: the noise, with the shape of `x`.
        y: classes, shape `(N,)`.

    Example:
        >>> x, noise = torch.zeros(2, 64), torch.ones(2, 64)
        >>> flow_loss(lambda x, t, y: 0 * x, x, torch.rand(2), noise, torch.tensor([1, 2])).item()
        1.0
    """
    noisy = x + t[:, None] * (noise - x)
    return functional.mse_loss(model(noisy, t, y), noise - x)


class Run(NamedTuple):
    """A trained model, the steps after which it was tested, and its test losses.

    Attributes:
        model: the model after the last step.
        steps: the step numbers, including the last one.
        losses: the test loss after each of them.

    Example:
        >>> Run(nn.Identity(), [10, 20], [1.5, 1.0]).steps
        [10, 20]
    """

    model: Denoiser
    steps: list[int]
    losses: list[float]


def train(
    variant: str,
    seed: int,
    steps: int,
    *,
    lr: float = 0.003,
    layers: int = LAYERS,
    every: int = 0,
) -> Run:
    """Train a denoiser with Adam; over the last third, the learning rate falls to zero.

    Args:
        variant: a name in `VARIANTS`.
        seed: the seed for the weights and the batches.
        steps: the number of steps.
        lr: the learning rate.
        layers: the number of blocks.
        every: number of steps between tests; 0 to test only once, at the end.

    Example:
        >>> train("adaLN-Zero", seed=0, steps=2, layers=1, every=1).steps
        [1, 2]
    """
    model = build(variant, seed, layers)
    digits, rng = _digits(), np.random.default_rng([seed, BATCHES])
    optimizer = torch.optim.Adam(model.parameters(), lr)
    tested: dict[int, float] = {}
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = lr * min(1.0, 3 * (steps - step + 1) / steps)
        rows = torch.tensor(rng.integers(0, len(digits.train_x), BATCH))
        given = _noisy(rng, digits.train_x[rows], digits.train_y[rows])
        optimizer.zero_grad()
        flow_loss(model, *given).backward()
        optimizer.step()
        if step == steps or (every and step % every == 0):
            tested[step] = held_out(model, digits)
    return Run(model, [*tested], [*tested.values()])


def _digits() -> Digits:
    """Return the digits with pixels from -1 to 1."""
    given = load_digits()
    return Digits(2 * given.train_x - 1, given.train_y, 2 * given.test_x - 1, given.test_y)


def _noisy(rng: np.random.Generator, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the arguments for `flow_loss` that come after the model."""
    t = torch.tensor(rng.random(len(x)))
    return x, t, torch.tensor(rng.normal(size=tuple(x.shape))), y


@torch.no_grad()
def held_out(model: Denoiser, digits: Digits) -> float:
    """Return the loss on the test images, with the same noise for all models."""
    given = _noisy(np.random.default_rng(TEST), digits.test_x, digits.test_y)
    return flow_loss(model, *given).item()


@torch.no_grad()
def sample(
    model: Denoiser, y: Tensor, start: ArrayLike | None = None, *, seed: int = 0, steps: int = 20
) -> Tensor:
    r"""Generate digits of the given classes, from noise, in Euler steps.

    .. math::
        x_{t - h} = x_t - h\, f(x_t, t, y)

    Args:
        model: a trained denoiser.
        y: classes, shape `(N,)`.
        start: the noise, shape `(N, 64)`; drawn with the seed if None.
        seed: the seed for the noise.
        steps: the number of steps.

    Returns:
        Images with pixels from about -1 to 1, shape `(N, 64)`.

    Example:
        >>> sample(build("adaLN-Zero", 0), torch.tensor([3, 8]), steps=2).shape
        torch.Size([2, 64])
    """
    rng = np.random.default_rng([seed, START])
    x = torch.tensor(rng.normal(size=(len(y), PIXELS**2)) if start is None else np.asarray(start))
    for step in range(steps):
        t = torch.full((len(y),), 1 - step / steps).to(x)
        x = x - model(x, t, y) / steps
    return x


def accuracy(images: Tensor, y: Tensor) -> float:
    """Return the fraction of images that a classifier trained on real digits assigns to `y`.

    The classifier is scikit-learn's `SVC`, with its defaults.

    Example:
        >>> digits = load_digits()
        >>> accuracy(2 * digits.test_x - 1, digits.test_y) > 0.98
        True
    """
    from sklearn.svm import SVC  # not at the top, because this import takes a second

    digits = _digits()
    classifier = SVC().fit(digits.train_x.numpy(), digits.train_y.numpy())
    found = classifier.predict(images.numpy())
    return float((found == y.numpy()).mean())


def first_gradients(model: Denoiser, seed: int = 0) -> Array:
    """Return the norm of each block's gradient before training, for its branches only.

    Args:
        model: a model with L blocks.
        seed: the seed for the batch of 256 images.

    Returns:
        Shape `(L,)`: for each block, the norm over the parameters of the attention and feed-forward
        network together.

    Example:
        >>> first_gradients(build("adaLN-Zero", 0)).tolist()
        [0.0, 0.0, 0.0, 0.0]
    """
    _backward(model, np.random.default_rng([seed, BATCHES]))
    norms = []
    for block in model.blocks:
        parts = (block.get_submodule(name) for name in ("attention", "mlp"))
        grads = [p.grad for part in parts for p in part.parameters() if p.grad is not None]
        norms.append(math.sqrt(sum(grad.square().sum().item() for grad in grads)))
    return np.array(norms)


def _backward(model: Denoiser, rng: np.random.Generator) -> None:
    digits = _digits()
    rows = torch.tensor(rng.integers(0, len(digits.train_x), 256))
    model.zero_grad()
    given = _noisy(rng, digits.train_x[rows], digits.train_y[rows])
    flow_loss(model, *given).backward()


PARTS = {
    "output layer": ("write",),
    "gates": ("gate",),
    "branches": ("attention", "mlp"),
    "shifts and scales": ("shift",),
    "embeddings of the condition": ("classes", "time"),
}


def trained_parts(model: Denoiser, steps: int, seed: int = 0, lr: float = 0.003) -> list[set[str]]:
    """Return, for each of Adam's first steps, which parts get a nonzero gradient.

    Parts are the keys of `PARTS`; a part of the blocks counts if any block's does.

    Example:
        >>> sorted(trained_parts(build("adaLN-Zero", 0), 1)[0])
        ['gates', 'output layer']
    """
    rng = np.random.default_rng([seed, BATCHES])
    optimizer = torch.optim.Adam(model.parameters(), lr)
    found = []
    for _ in range(steps):
        _backward(model, rng)
        nonzero = {_part(name) for name, p in _gradients(model) if p.count_nonzero()}
        found.append(nonzero - {""})
        optimizer.step()
    return found


def _gradients(model: Denoiser) -> list[tuple[str, Tensor]]:
    """Return gradients keyed by name; those of the blocks' modulation layers are split in two."""
    found = []
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        if name.startswith("blocks") and ".modulation." in name:
            found += [(f"{name}.shift", parameter.grad[: 2 * WIDTH])]
            found += [(f"{name}.gate", parameter.grad[2 * WIDTH :])]
        else:
            found.append((name, parameter.grad))
    return found


def _part(name: str) -> str:
    places = name.split(".")
    return next((part for part, keys in PARTS.items() if set(keys) & set(places)), "")
