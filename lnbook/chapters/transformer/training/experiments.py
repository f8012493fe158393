"""The measurements for the chapter on training, and a way to generate text."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from lnbook.chapters.shared.language_model import build, forward, loss
from lnbook.data.text import Text
from lnbook.transformer import (
    CausalLanguageModel,
    TransformerBlock,
)

__all__ = ["deviations", "first_step", "generate", "gradient_by_block"]

Array = NDArray[np.float64]


@torch.no_grad()
def deviations(model: CausalLanguageModel, x: Tensor) -> Array:
    r"""Measure the standard deviation of the inputs of each block's two norms.

    In a Post-LN block, these are the sums of stream and branch. :math:`\sigma` is taken over the
    features of a position and averaged over all positions of all windows.

    Args:
        model: a model whose blocks have two norms, the modules `norm1` and `norm2`.
        x: characters, integers of shape `(N, L)`.

    Returns:
        The two numbers for each block, shape `(layers, 2)`.

    Example:
        >>> model = build(9, np.random.default_rng(0), layers=3, width=8, heads=2, length=4)
        >>> deviations(model, torch.tensor([[1, 2, 3]])).shape
        (3, 2)
    """
    found: list[float] = []

    def read(_module: Any, inputs: tuple[Tensor, ...]) -> None:
        found.append(inputs[0].double().std(-1, correction=0).mean().item())

    norms: list[Any] = [
        norm for block in model.encoder.layers for norm in (block.norm1, block.norm2)
    ]
    hooks = [norm.register_forward_pre_hook(read) for norm in norms]
    try:
        model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return np.array(found).reshape(-1, 2)


def gradient_by_block(model: CausalLanguageModel, x: Tensor, y: Tensor) -> Array:
    """Measure the gradient of the loss with respect to the hidden states after each block.

    Args:
        model: the model.
        x: characters, integers of shape `(N, L)`.
        y: the next characters, of the same shape.

    Returns:
        The norm of the gradient over all positions, first block first, shape `(layers,)`.

    Example:
        >>> model = build(9, np.random.default_rng(0), layers=2, width=8, heads=2, length=4)
        >>> gradient_by_block(model, torch.tensor([[1, 2]]), torch.tensor([[2, 3]])).shape
        (2,)
    """
    with torch.enable_grad():
        scores, streams = forward(model, x)
        loss = functional.cross_entropy(scores.flatten(0, 1), y.flatten())
        gradients = torch.autograd.grad(loss, streams)
    return np.array([gradient.norm().item() for gradient in gradients])


def first_step(
    block: type[TransformerBlock],
    layers: int,
    lr: float,
    *,
    seed: int = 0,
    start: str = "xavier",
    width: int = 64,
    vocab_size: int = 64,
    batch: int = 8,
    length: int = 64,
) -> dict[str, float]:
    r"""Take Adam's first step, and measure how much parameters and outputs change.

    The inputs and the next characters are random, so the result doesn't depend on any text.

    Args:
        block: the class of the blocks.
        layers: the number of blocks.
        lr: the learning rate of the step.
        seed: determines the initial values and the data.
        start: see `build`.
        width: D, the size of the stream.
        vocab_size: the number of different characters.
        batch: the number of windows.
        length: the number of characters in each.

    Returns:
        `"gradient"`, the norm of the gradient of all parameters; `"update"`, the root mean
        square of their changes; `"output"`, the norm of the change in the scores on the same
        windows, divided by the norm of the scores (both without their mean over the characters,
        which has no effect on the probabilities).

    Example:
        >>> from lnbook.transformer import PreLNBlock
        >>> found = first_step(PreLNBlock, 1, 1e-3, width=8, batch=2, length=8)
        >>> found["update"] < 1e-3, found["output"] > 0
        (True, True)
    """
    rng = np.random.default_rng(seed)
    model = build(vocab_size, rng, block, layers=layers, width=width, length=length, start=start)
    x, y = (torch.from_numpy(rng.integers(0, vocab_size, (batch, length))) for _ in range(2))
    before = [parameter.detach().clone() for parameter in model.parameters()]
    with torch.no_grad():
        old = model(x)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loss(model, (x, y)).backward()
    gradients = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    optimizer.step()
    with torch.no_grad():
        change = model(x) - old
        moved = torch.cat(
            [(p - b).flatten() for p, b in zip(model.parameters(), before, strict=True)]
        )
    return {
        "gradient": gradients.norm().item(),
        "update": moved.square().mean().sqrt().item(),
        "output": (_without_mean(change).norm() / _without_mean(old).norm()).item(),
    }


def _without_mean(scores: Tensor) -> Tensor:
    return scores - scores.mean(-1, keepdim=True)


@torch.no_grad()
def generate(
    model: CausalLanguageModel,
    text: Text,
    prompt: str,
    count: int,
    rng: np.random.Generator,
    *,
    temperature: float = 1.0,
) -> str:
    """Let a model continue a text, one character at a time.

    Args:
        model: the model.
        text: the text it was trained on, for its alphabet.
        prompt: the beginning, at least one character of that alphabet.
        count: the number of characters to add.
        rng: draws the characters.
        temperature: the number that the scores are divided by. Below 1, likely characters become
            likelier.

    Returns:
        The prompt, followed by what the model added.

    Raises:
        ValueError: the prompt is empty or contains other characters, `count` is negative, or the
            temperature isn't positive.

    Example:
        >>> from lnbook.chapters.shared.language_model import train
        >>> ab = torch.tensor([0, 1] * 50)
        >>> text = Text("ab", ab, ab)
        >>> run = train(text, layers=1, width=8, heads=2, length=8, steps=60, lr=0.01)
        >>> generate(run.model, text, "ab", 4, np.random.default_rng(0), temperature=0.1)
        'ababab'
    """
    unknown = set(prompt) - set(text.alphabet)
    if not prompt or unknown:
        raise ValueError(
            f"generate: expected a prompt of characters of the alphabet, but got {prompt!r}"
        )
    if count < 0 or not temperature > 0:
        raise ValueError(
            f"generate: expected count of at least 0 and a positive temperature, "
            f"but got {count} and {temperature}"
        )
    tokens = [text.alphabet.index(character) for character in prompt]
    for _ in range(count):
        scores = model(torch.tensor(tokens[-model.max_length :]))[-1].double() / temperature
        chances = scores.softmax(-1).numpy()
        tokens.append(int(rng.choice(len(chances), p=chances / chances.sum())))
    return text.decode(torch.tensor(tokens))
