"""The checkers for the chapter on when to use LayerNorm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, judge_choice, running
from lnbook.training import initialize_

__all__ = ["Block", "check_bias", "check_choices", "check_start", "check_variance_left"]

Array = NDArray[np.float64]

FEATURES = 8

WORDS = ("LN", "RMSNorm", "BN", "GN", "IN", "none", "keep")
# For each model, the good answers, and replies to wrong ones that deserve an explanation.
CHOICES: Mapping[str, tuple[tuple[str, ...], Mapping[str, str]]] = MappingProxyType(
    {
        "a": (
            ("LN", "GN"),
            {
                "BN": "The penalty is on the gradient of each image by itself. "
                "BN makes the score of an image depend on the others.",
                "IN": "It treats each image separately, but it also removes the mean and scale of "
                "each channel, which a critic may need. Look at question 5.",
                "RMSNorm": "It treats each image separately, too, but the guide lists two options "
                "with a longer track record. Look at question 5.",
                "none": "That can work, but the authors of this penalty recommend a norm.",
                "keep": "You designed it yourself, so there's no recipe or trained weight to keep.",
            },
        ),
        "b": (
            ("keep",),
            {
                "LN": "It already has LayerNorm, with its own placement and epsilon. Which answer "
                "says that you leave all of that alone?",
                "RMSNorm": "The trained weights depend on the norm that they were trained with.",
                "BN": "The trained weights depend on the norm that they were trained with.",
                "none": "The trained weights depend on the norm that they were trained with.",
            },
        ),
        "c": (
            ("IN",),
            {
                "LN": "Its mean and scale run over all channels. You want to remove the mean and "
                "scale of each channel.",
                "BN": "Its mean runs over all images, so the style of a single one isn't removed.",
                "keep": "The network is new. Which norm should it have?",
            },
        ),
        "d": (
            ("none", "keep"),
            {
                "LN": "Nothing calls for a norm: the network is shallow, and it trains.",
                "RMSNorm": "Nothing calls for a norm: the network is shallow, and it trains.",
                "BN": "Nothing calls for a norm: the network is shallow, and it trains.",
            },
        ),
        "e": (
            ("BN", "keep"),
            {
                "LN": "The recipe was tuned with another norm, and large batches suit that norm.",
                "GN": "It comes close, but large batches suit the norm of the recipe.",
                "none": "This network was tuned with a norm.",
            },
        ),
        "f": (
            ("GN",),
            {
                "BN": "A single image gives poor statistics, and they change with every image.",
                "LN": "Over (C, H, W) it did worse in this network than its relative with groups.",
                "keep": "The recipe's norm needs more images per device than you have.",
            },
        ),
        "g": (
            ("LN", "RMSNorm"),
            {
                "BN": "Over the tokens of a batch, it would let a token see the future.",
                "GN": "Statistics per token are the safe choice. Look at question 2.",
                "none": "It can be done, but start with what well-known models use: question 2.",
                "keep": "The model is new. Which norm should it have?",
            },
        ),
    }
)


@checker
def check_choices(
    a: Any = None,
    b: Any = None,
    c: Any = None,
    d: Any = None,
    e: Any = None,
    f: Any = None,
    g: Any = None,
) -> str:
    """Check which norm suits seven networks: its name, or "keep" to leave everything as it is.

    Args:
        a: a new GAN critic with a gradient penalty.
        b: fine-tuning a trained BERT.
        c: a new network that transfers the style of paintings.
        d: a shallow network without a norm that trains well.
        e: a ResNet-50 trained with its standard recipe, with 256 images per batch.
        f: a ResNet-50 with one image per GPU.
        g: a new decoder-only language model.

    Each answer is "LN", "RMSNorm", "BN", "GN", "IN", "none" or "keep".

    Example:
        >>> check_choices(a="LN", b="keep", c="BN")
        Not yet. c: Its mean runs over all images, so the style of a single one isn't removed.
    """
    answers = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f, "g": g}
    otherwise = "That doesn't fit. Walk through the questions of the guide once more."
    for name, answer in answers.items():
        right, replies = CHOICES[name]
        judge_choice(answer, name, WORDS, right, dict.fromkeys(WORDS, otherwise) | dict(replies))
    return "All seven agree with the guide and the works it cites."


BIAS = (5.0, 2.0, -1.0)
CENTERED = (3.0, 0.0, -3.0)
NOTHING = (0.0, 0.0, 0.0)
# For each norm, the shortest bias, and replies to other answers.
BIASES: Mapping[str, tuple[tuple[float, ...], Mapping[str, tuple[float, ...]]]] = MappingProxyType(
    {
        "layer_norm": (
            CENTERED,
            {
                "LayerNorm subtracts one number from the whole row, so it can't remove three "
                "different ones.": NOTHING,
                "That gives the right outputs, but a shorter bias gives them, too: what does "
                "LayerNorm subtract from every row?": BIAS,
                "Don't divide by the standard deviation: the bias is added to W x, and then it "
                "would count for less.": tuple(v / 6**0.5 for v in CENTERED),
            },
        ),
        "rms_norm": (
            BIAS,
            {
                "RMSNorm subtracts no mean, so the mean of the bias changes the output.": CENTERED,
                "RMSNorm subtracts nothing, so it can't remove a bias.": NOTHING,
            },
        ),
        "batch_norm": (
            NOTHING,
            {
                "BatchNorm subtracts the mean of each feature over the batch, not the mean of "
                "the row.": CENTERED,
                "That gives the right outputs, but a shorter bias gives them, too: what does "
                "BatchNorm subtract from every column?": BIAS,
            },
        ),
    }
)
SHOWN = {"layer_norm": "LayerNorm", "rms_norm": "RMSNorm", "batch_norm": "BatchNorm"}


@checker
def check_bias(layer_norm: Any = None, rms_norm: Any = None, batch_norm: Any = None) -> str:
    """Check the shortest bias that is equivalent to (5, 2, -1) before three norms.

    Args:
        layer_norm: three numbers, for a linear layer before LayerNorm.
        rms_norm: three numbers, before RMSNorm.
        batch_norm: three numbers, before BatchNorm in training.

    Example:
        >>> check_bias(layer_norm=(3, 0, -3), rms_norm=(0, 0, 0))
        Not yet. RMSNorm: RMSNorm subtracts nothing, so it can't remove a bias.
    """
    answers = {"layer_norm": layer_norm, "rms_norm": rms_norm, "batch_norm": batch_norm}
    for name, answer in answers.items():
        right, mistakes = BIASES[name]
        judge(
            as_array(answer, (3,), f"Your bias for {SHOWN[name]}"),
            np.array(right),
            {f"{SHOWN[name]}: {text}": np.array(wrong) for text, wrong in mistakes.items()},
            otherwise=f"{SHOWN[name]}: which biases differ from (5, 2, -1) only by something "
            "that the norm subtracts anyway? Take the shortest.",
            tolerance=0.01,
        )
    return "LayerNorm removes the mean of a bias, RMSNorm nothing, BatchNorm all of it."


def _left(h: Array, p: float) -> Array:
    return _ratio(h, 1 / (1 - p), 1.0)


def _ratio(h: Array, squares: float, means: float) -> Array:
    """The result if you multiply the mean of the squares and the mean by these factors."""
    left: Array = h.var(axis=0) / (squares * (h**2).mean(axis=0) - (means * h.mean(axis=0)) ** 2)
    return left


VARIANCE_MISTAKES: Mapping[str, Callable[[Array, float], Array]] = MappingProxyType(
    {
        "That holds for features with mean 0. These have been through a ReLU.": (
            lambda h, p: np.full(h.shape[1], 1 - p)
        ),
        "You divided by the fraction that is dropped. What is kept is divided by 1 - p.": (
            lambda h, p: _ratio(h, 1 / p, 1.0)
        ),
        "That's the other way around: the variance in evaluation goes in the numerator.": (
            lambda h, p: 1 / _left(h, p)
        ),
        "That's a ratio of standard deviations. The question asks for the variance.": (
            lambda h, p: np.sqrt(_left(h, p))
        ),
        "Squares grow by the square of 1 / (1 - p), but only a fraction 1 - p of them is kept.": (
            lambda h, p: _ratio(h, 1 / (1 - p) ** 2, 1.0)
        ),
        "This is dropout without the division by 1 - p, which is what keeps the mean unchanged.": (
            lambda h, p: _ratio(h, 1 - p, 1 - p)
        ),
    }
)


@checker
def check_variance_left(function: Callable[[Array, float], Any]) -> str:
    r"""Check the variance of BatchNorm's outputs in evaluation, with dropout before it.

    .. math::
        \frac{\operatorname{Var}(h)}{\overline{h^2} / (1 - p) - \overline{h}^2}

    Source: Li et al. 2019.

    Args:
        function: takes `h` of shape `(N, H)`, features after a ReLU, and the dropout probability
            `p`; returns the variances, shape `(H,)`.

    Example:
        >>> check_variance_left(lambda h, p: np.full(h.shape[1], 1 - p))
        Not yet. That holds for features with mean 0. These have been through a ReLU.
    """
    rng = np.random.default_rng(5)
    for size, p in (((40, 3), 0.3), ((7, 7), 0.6)):
        h = np.maximum(rng.normal(size=size) + 0.3, 0.0)
        with running():
            answer = function(h.copy(), p)
        if answer is None:
            raise NotYet("Your function returns nothing.")
        judge(
            as_array(answer, (size[1],), "What your function returns"),
            _left(h, p),
            {text: wrong(h, p) for text, wrong in VARIANCE_MISTAKES.items()},
            otherwise="Compute the variance of the dropped features, E[(h m)^2] - E[h m]^2, where "
            "m is 1 / (1 - p) with probability 1 - p and otherwise 0.",
        )
    return "That's what is left of a variance of 1, up to epsilon."


class Block(nn.Module):
    """A residual block with two norms: x + norm2(linear2(relu(norm1(linear1(x))))).

    Args:
        features: the size of the last dimension.

    Example:
        >>> Block(4)(torch.zeros(2, 4).double()).shape
        torch.Size([2, 4])
    """

    def __init__(self, features: int = FEATURES) -> None:
        super().__init__()
        self.linear1, self.norm1 = nn.Linear(features, features), nn.LayerNorm(features)
        self.linear2, self.norm2 = nn.Linear(features, features), nn.LayerNorm(features)
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, with the shape of `x`, `(N, features)`."""
        h = torch.relu(self.norm1(self.linear1(x)))
        y: Tensor = x + self.norm2(self.linear2(h))
        return y


# Replies to a block that isn't the identity, by what was set to 0.
NO_IDENTITY = {
    "norm1.weight": "That's the gain of the first norm. The last one ends the branch.",
    "linear2.weight": "The branch ends in a norm. It makes the bias of the last linear layer "
    "large.",
}


@checker
def check_start(function: Callable[[Block], Any]) -> str:
    """Check a function that makes a block start as the identity, but still able to learn.

    Args:
        function: takes a `Block` and changes its initial values in place.

    Example:
        >>> check_start(lambda block: None)
        Not yet. The block doesn't start as the identity: its branch still adds something.
    """
    rng = np.random.default_rng(3)
    block = initialize_(Block(), rng)
    x, target = (torch.from_numpy(rng.normal(size=(16, FEATURES))) for _ in range(2))
    with running():
        function(block)
    block.double()  # since a gain that the function replaced may be float32
    after = _values(block)
    zeroed = {name for name, value in after.items() if not value.any()}
    with running("The block"):
        output = block(x)
    if not torch.allclose(output, x):
        for name, text in NO_IDENTITY.items():
            if name in zeroed:
                raise NotYet(text)
        raise NotYet("The block doesn't start as the identity: its branch still adds something.")
    with running("The block"):
        _train(block, x, target)
    stuck = [name for name, value in _values(block).items() if torch.equal(value, after[name])]
    if "norm1.weight" in stuck and "norm1.weight" in zeroed:
        raise NotYet(
            "The block starts as the identity, but its first layer never learns. The first norm "
            "is followed by a ReLU: with gain and shift 0, neither a value nor a gradient gets "
            "through."
        )
    if stuck:
        raise NotYet(f"These never change in 20 steps: {', '.join(stuck)}.")
    return "It starts as the identity, and every parameter learns."


def _values(block: Block) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in block.named_parameters()}


def _train(block: Block, x: Tensor, target: Tensor) -> None:
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        (block(x) - target).square().mean().backward()
        optimizer.step()
