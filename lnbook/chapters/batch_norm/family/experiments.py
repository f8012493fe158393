"""Experiments for the chapter on the family of norms: a small convnet on digits with each norm.

All runs are in float64 and get their random numbers from NumPy, so they're the same on every
processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lnbook.data.digits import Digits, load_digits
from lnbook.layers import DyT, LayerNorm2d, RMSNorm
from lnbook.training import fit, initialize_, minibatches

__all__ = [
    "HEADS",
    "KINDS",
    "ChannelsLast",
    "Run",
    "ScaleAndShift",
    "SignedMean",
    "accuracy",
    "convnet",
    "digit_images",
    "train",
]

CHANNELS, SIDE, CLASSES = 12, 8, 10
STRIDES = (2, 1, 1)
BATCH = 32
EPS = 1e-5

HEADS = ("pooled", "signed", "flat")
ORDER, SIGNS = 1, 2  # these have their own generators; the weights use only the seed


class ScaleAndShift(nn.Module):
    r"""Scale and shift each channel, as the other kinds do, but without normalizing it first.

    Args:
        channels: the size of the second dimension of the input.

    Example:
        >>> ScaleAndShift(2)(torch.ones(1, 2, 1, 1)).flatten().tolist()
        [1.0, 1.0]
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled and shifted `x`, of shape `(N, C, H, W)`."""
        return x * self.weight[:, None, None] + self.bias[:, None, None]


class SignedMean(nn.Module):
    """Average each channel over all pixels after multiplying each by a fixed random sign.

    Like global average pooling, it returns one number per channel and learns nothing, but here
    the position of a value in the map makes a difference.

    Args:
        channels: the size of the second dimension of the input.
        side: height and width of the input.
        rng: the generator for the signs.

    Example:
        >>> SignedMean(2, 4, np.random.default_rng(0))(torch.ones(3, 2, 4, 4)).shape
        torch.Size([3, 2])
    """

    signs: Tensor

    def __init__(self, channels: int, side: int, rng: np.random.Generator) -> None:
        super().__init__()
        signs = rng.choice([-1.0, 1.0], size=(channels, side, side))
        self.register_buffer("signs", torch.from_numpy(signs))

    def forward(self, x: Tensor) -> Tensor:
        """Return the signed means of `x`, of shape `(N, C)`."""
        return (x * self.signs).mean(dim=(2, 3))


class ChannelsLast(nn.Module):
    """Apply a layer that works on the last dimension to the channels of images.

    Args:
        layer: takes and returns `(N, H, W, C)`.

    Example:
        >>> ChannelsLast(nn.LayerNorm(2))(torch.zeros(1, 2, 3, 4)).shape
        torch.Size([1, 2, 3, 4])
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's output for `x`, of shape `(N, C, H, W)`."""
        y: Tensor = self.layer(x.permute(0, 2, 3, 1))
        return y.permute(0, 3, 1, 2)


# For each kind of norm, a function that takes the number of channels and the side of the image and
# returns a layer with a scale and a shift.
KINDS: Mapping[str, Callable[[int, int], nn.Module]] = MappingProxyType(
    {
        "none": lambda channels, side: ScaleAndShift(channels),
        "BN": lambda channels, side: nn.BatchNorm2d(channels, EPS),
        "LN": lambda channels, side: nn.LayerNorm((channels, side, side), EPS),
        "GN(1)": lambda channels, side: nn.GroupNorm(1, channels, EPS),
        "GN(4)": lambda channels, side: nn.GroupNorm(4, channels, EPS),
        "IN": lambda channels, side: nn.InstanceNorm2d(channels, EPS, affine=True),
        "LN2d": lambda channels, side: LayerNorm2d(channels, EPS),
        "RMS2d": lambda channels, side: ChannelsLast(RMSNorm(channels, EPS)),
        "DyT": lambda channels, side: ChannelsLast(DyT(channels)),
    }
)


def convnet(kind: str, head: str = "pooled", seed: int = 0) -> nn.Sequential:
    r"""Build a convnet for digits: convolution, norm and ReLU, three times, then a linear layer.

    The convolutions (3 x 3, 12 channels, no bias) return 4 x 4 maps. The weights of the
    convolutions and the linear layer depend only on `seed`, so they're the same for all kinds.

    Args:
        kind: the norm, one of `KINDS`.
        head: what the linear layer sees: "pooled", the mean of each channel over all pixels;
            "signed", the same after multiplying each pixel by a fixed random sign; or "flat",
            every number in the map.
        seed: the seed for the weights.

    Returns:
        A model in float64, from `(N, 1, 8, 8)` to `(N, 10)`.

    Raises:
        ValueError: `kind` or `head` is unknown.

    Example:
        >>> convnet("LN2d")(torch.zeros(5, 1, 8, 8, dtype=torch.float64)).shape
        torch.Size([5, 10])
    """
    if kind not in KINDS:
        raise ValueError(f"convnet: expected kind to be one of {list(KINDS)}, but got {kind!r}")
    if head not in HEADS:
        raise ValueError(f"convnet: expected head to be one of {list(HEADS)}, but got {head!r}")
    layers: list[nn.Module] = []
    channels, side = 1, SIDE
    for stride in STRIDES:
        side //= stride
        convolution = nn.Conv2d(channels, CHANNELS, 3, stride=stride, padding=1, bias=False)
        layers += [convolution, KINDS[kind](CHANNELS, side), nn.ReLU()]
        channels = CHANNELS
    if head == "pooled":
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, CLASSES)]
    elif head == "signed":
        signs = np.random.default_rng([seed, SIGNS])
        layers += [SignedMean(channels, side, signs), nn.Linear(channels, CLASSES)]
    else:
        layers += [nn.Flatten(), nn.Linear(channels * side**2, CLASSES)]
    return initialize_(nn.Sequential(*layers), np.random.default_rng(seed)).double()


@lru_cache(maxsize=1)
def _digits() -> Digits:
    return load_digits()


def _images(x: Tensor) -> Tensor:
    return x.view(-1, 1, SIDE, SIDE)


def digit_images() -> Tensor:
    """Return the test digits as images, float64 of shape `(450, 1, 8, 8)`, from 0 to 1.

    Example:
        >>> digit_images().shape
        torch.Size([450, 1, 8, 8])
    """
    return _images(_digits().test_x)


@dataclass(frozen=True)
class Run:
    """A trained model, and its accuracy along the way.

    Attributes:
        model: the model, in evaluation mode.
        steps: the steps after which it was tested, counted from 1.
        accuracies: its test accuracy after these steps.

    Example:
        >>> run = train("LN2d", steps=4, every=2)
        >>> run.steps, len(run.accuracies), run.model.training
        ([2, 4], 2, False)
    """

    model: nn.Sequential
    steps: list[int]
    accuracies: list[float]


def train(
    kind: str,
    head: str = "pooled",
    seed: int = 0,
    steps: int = 100,
    lr: float = 0.01,
    every: int = 0,
) -> Run:
    """Train the convnet on the digits, with Adam and batches of 32.

    Weights and batches depend only on `seed`, so all kinds start from the same weights and see
    the same batches.

    Args:
        kind: the norm, one of `KINDS`.
        head: "pooled", "signed" or "flat", as for `convnet`.
        seed: the seed for the weights and batches.
        steps: number of batches.
        lr: the learning rate.
        every: number of steps between tests; 0 to test only once, at the end.

    Returns:
        The model and its accuracies.

    Raises:
        ValueError: `kind` or `head` is unknown.

    Example:
        >>> run = train("GN(1)", steps=2, every=1)
        >>> run.steps, run.accuracies[-1] == accuracy(run.model)
        ([1, 2], True)
    """
    model = convnet(kind, head, seed)
    digits = _digits()
    batches = minibatches(
        np.random.default_rng([seed, ORDER]),
        _images(digits.train_x),
        digits.train_y,
        batch_size=BATCH,
        steps=steps,
    )
    history = fit(
        model,
        batches,
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), lr=lr),
        measure={"accuracy": accuracy},
        every=every,
        label=kind,
        total=steps,
    )
    return Run(model.eval(), history.steps, history.measures["accuracy"])


@torch.no_grad()
def accuracy(model: nn.Module, change: Callable[[Tensor], Tensor] | None = None) -> float:
    """Return the test accuracy of a model on the digits.

    Args:
        model: a model from `(N, 1, 8, 8)` in float64 to `(N, 10)`. Its mode isn't changed.
        change: applied to the 450 images before testing; their pixels go from 0 (paper) to 1 (ink).

    Returns:
        A number from 0 to 1.

    Example:
        >>> model = convnet("none")
        >>> 0.0 <= accuracy(model) <= 0.5  # untrained
        True
    """
    images = digit_images()
    scores = model(images if change is None else change(images))
    return float((scores.argmax(dim=1) == _digits().test_y).double().mean())
