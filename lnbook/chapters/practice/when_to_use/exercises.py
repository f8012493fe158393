"""The checkers of the chapter on when to use LayerNorm."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, running
from lnbook.training import initialize_

__all__ = ["Block", "check_choices", "check_start", "check_variance_left"]

Array = NDArray[np.float64]

FEATURES = 8

WORDS = ("LN", "BN", "GN", "IN", "none", "keep")
# For each situation the right word, and what to say to the wrong ones that call for an answer.
CHOICES: Mapping[str, tuple[str, Mapping[str, str]]] = MappingProxyType(
    {
        "a": (
            "LN",
            {
                "BN": "The penalty is on the gradient of each image by itself. "
                "BN makes the score of an image depend on the others.",
                "none": "That can work, but the authors recommend a norm.",
                "GN": "GN keeps the images apart, too. The authors recommend another one.",
                "keep": "It has no trained weights yet. Name the norm that it should have.",
            },
        ),
        "b": (
            "keep",
            {
                "LN": "It has LayerNorm already, with its own place and epsilon. Which word "
                "says that you leave that alone?",
                "BN": "The trained weights rely on the norm that they were trained with.",
                "none": "The trained weights rely on the norm that they were trained with.",
            },
        ),
        "c": (
            "IN",
            {
                "LN": "Its mean and scale run over all channels. What is to be removed here is "
                "the mean and scale of each channel.",
                "BN": "Its mean runs over all images, so the style of one is not removed.",
            },
        ),
        "d": (
            "none",
            {
                "LN": "Nothing here asks for it: the network is shallow, and it trains.",
                "BN": "Nothing here asks for it: the network is shallow, and it trains.",
                "keep": "It has no norm that could be kept. Which word says that?",
            },
        ),
        "e": (
            "BN",
            {
                "LN": "The recipe was tuned with another norm, which large batches suit.",
                "GN": "It comes close, but large batches suit the norm of the recipe.",
                "none": "This network was tuned with a norm.",
                "keep": "Right, keep to the recipe. But the weights are new, so name its norm.",
            },
        ),
        "f": (
            "GN",
            {
                "BN": "One image gives poor statistics, and the next image other ones.",
                "LN": "Over (C, H, W) it did worse in this network than its relative with groups.",
                "keep": "The weights are new, and the norm of the recipe needs larger batches.",
            },
        ),
    }
)


@checker
def check_choices(
    a: Any = None, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None
) -> str:
    """Check which norm suits six networks: its name, or "keep" where there are trained weights.

    Args:
        a: a GAN critic with a gradient penalty.
        b: fine-tuning a trained BERT.
        c: transferring the style of paintings.
        d: a shallow network without a norm that trains well.
        e: a ResNet-50 by its recipe, with 256 images a batch.
        f: a ResNet-50 with one image a batch.

    Each answer is "LN", "BN", "GN", "IN", "none" or "keep".

    Example:
        >>> check_choices(a="LN", b="keep", c="BN")
        Not yet. c: Its mean runs over all images, so the style of one is not removed.
    """
    answers = {"a": a, "b": b, "c": c, "d": d, "e": e, "f": f}
    for name, answer in answers.items():
        right, messages = CHOICES[name]
        if answer is None or answer is ...:
            raise NotYet(f"{name} is still missing.")
        if not isinstance(answer, str) or answer not in WORDS:
            raise NotYet(f"{name} should be one of {', '.join(WORDS)}, but is {answer!r}.")
        if answer != right:
            otherwise = "That does not suit. Go through the questions of the guide once more."
            raise NotYet(f"{name}: {messages.get(answer, otherwise)}")
    return "All six, as the guide and the works it cites have it."


def _left(h: Array, share: float) -> Array:
    return _ratio(h, 1 / (1 - share), 1.0)


def _ratio(h: Array, squares: float, means: float) -> Array:
    """What a reader gets who multiplies the mean of the squares and the mean by these factors."""
    left: Array = h.var(axis=0) / (squares * (h**2).mean(axis=0) - (means * h.mean(axis=0)) ** 2)
    return left


VARIANCE_MISTAKES: Mapping[str, Callable[[Array, float], Array]] = MappingProxyType(
    {
        "That holds for features with mean 0. These have been through a ReLU.": (
            lambda h, p: np.full(h.shape[1], 1 - p)
        ),
        "You divided by the share that is dropped. What is kept is divided by 1 - p.": (
            lambda h, p: _ratio(h, 1 / p, 1.0)
        ),
        "That is the other way around: the variance in evaluation goes into the numerator.": (
            lambda h, p: 1 / _left(h, p)
        ),
        "That is a ratio of standard deviations. The variance is asked for.": (
            lambda h, p: np.sqrt(_left(h, p))
        ),
        "Squares grow by the square of 1 / (1 - p), but only the share 1 - p of them is kept.": (
            lambda h, p: _ratio(h, 1 / (1 - p) ** 2, 1.0)
        ),
        "This is dropout without the division by 1 - p, which keeps the mean as it is.": (
            lambda h, p: _ratio(h, 1 - p, 1 - p)
        ),
    }
)


@checker
def check_variance_left(function: Callable[[Array, float], Any]) -> str:
    r"""Check the variance that BatchNorm's outputs have in evaluation, with dropout before it.

    .. math::
        \frac{\operatorname{Var}(h)}{\overline{h^2} / (1 - p) - \overline{h}^2}

    Source: Li et al. 2019.

    Args:
        function: takes `h` of shape `(N, H)`, features after a ReLU, and the share `p`; returns
            the variances, shape `(H,)`.

    Example:
        >>> check_variance_left(lambda h, p: np.full(h.shape[1], 1 - p))
        Not yet. That holds for features with mean 0. These have been through a ReLU.
    """
    rng = np.random.default_rng(5)
    for size, share in (((40, 3), 0.3), ((7, 7), 0.6)):
        h = np.maximum(rng.normal(size=size) + 0.3, 0.0)
        with running():
            answer = function(h.copy(), share)
        if answer is None:
            raise NotYet("Your function returns nothing.")
        judge(
            as_array(answer, (size[1],), "What your function returns"),
            _left(h, share),
            {text: wrong(h, share) for text, wrong in VARIANCE_MISTAKES.items()},
            otherwise="Compute the variance of the dropped features, E[(h m)^2] - E[h m]^2, where "
            "m is 1 / (1 - p) with probability 1 - p and else 0.",
            tolerance=1e-8,
        )
    return "That is what is left of a variance of 1, up to epsilon."


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
        """Return the output, of the shape of `x`, `(N, features)`."""
        h = torch.relu(self.norm1(self.linear1(x)))
        y: Tensor = x + self.norm2(self.linear2(h))
        return y


# What to say of a block that is no identity, by what was set to 0.
NO_IDENTITY = {
    "norm1.weight": "That is the gain of the first norm. The last one ends the branch.",
    "linear2.weight": "The branch ends in a norm. It makes the bias of the last linear layer "
    "large.",
}


@checker
def check_start(function: Callable[[Block], Any]) -> str:
    """Check a function that has a block start as the identity, and able to learn.

    Args:
        function: takes a `Block` and changes where it starts, in place.

    Example:
        >>> check_start(lambda block: None)
        Not yet. The block is not the identity at the start: its branch still adds something.
    """
    rng = np.random.default_rng(3)
    block = initialize_(Block(), rng)
    before = _values(block)
    x, target = (torch.from_numpy(rng.normal(size=(16, FEATURES))) for _ in range(2))
    with running():
        function(block)
    after = _values(block)
    zeroed = {
        name
        for name, value in after.items()
        if not torch.equal(value, before[name]) and not value.any()
    }
    if not torch.allclose(block(x), x):
        for name, text in NO_IDENTITY.items():
            if name in zeroed:
                raise NotYet(text)
        raise NotYet("The block is not the identity at the start: its branch still adds something.")
    _train(block, x, target)
    stuck = [name for name, value in _values(block).items() if torch.equal(value, after[name])]
    if "norm1.weight" in stuck and "norm1.weight" in zeroed:
        raise NotYet(
            "The block starts as the identity, but its first layer never learns. Behind the first "
            "norm stands a ReLU: with gain and shift 0 it passes neither a value nor a gradient."
        )
    if stuck:
        raise NotYet(f"These never move, in 20 steps: {', '.join(stuck)}.")
    if zeroed != {"norm2.weight"}:
        raise NotYet(f"One gain is enough. You also set: {', '.join(sorted(zeroed))}.")
    return "The identity at the start, and every parameter learns."


def _values(block: Block) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in block.named_parameters()}


def _train(block: Block, x: Tensor, target: Tensor) -> None:
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    for _ in range(20):
        optimizer.zero_grad()
        (block(x) - target).square().mean().backward()
        optimizer.step()
