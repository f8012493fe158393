"""Checkers for the chapter's exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn

from lnbook.chapters.shared.checker import NotYet, as_array, checker, judge, judge_choice, running

__all__ = ["check_freeze", "check_steps", "check_which"]


@checker
def check_steps(up: Any = None, down: Any = None) -> str:
    """Check the largest steps from 1 that bfloat16 rounds away.

    Args:
        up: the largest step above 1.
        down: the largest step below 1.

    Example:
        >>> check_steps(up=2**-7, down=2**-9)
        Not yet. Up: that's the distance to the next number. Half of it is enough.
    """
    whole = "that's the distance to the next number. Half of it is enough."
    judge(
        as_array(up, (), "Your step up"),
        np.array(2.0**-8),
        {f"Up: {whole}": np.array(2.0**-7), "Up: that's a quarter.": np.array(2.0**-9)},
        otherwise="Up: the next number is 1 + 1/128. Where is the middle?",
        tolerance=6e-5,
    )
    judge(
        as_array(down, (), "Your step down"),
        np.array(2.0**-9),
        {f"Down: {whole}": np.array(2.0**-8), "Down: that's a quarter.": np.array(2.0**-10)},
        otherwise="Down: the next number is 1 - 1/256. Where is the middle?",
        tolerance=6e-5,
    )
    return "Between the two, gamma can fall but not rise."


class _Example(nn.Module):
    """A model whose names don't tell you which modules are norms.

    `class_token` and `attention.in_proj_weight` belong to modules that have submodules.
    """

    def __init__(self) -> None:
        super().__init__()
        self.class_token = nn.Parameter(torch.zeros(4))
        self.ln_1 = nn.LayerNorm(4)
        self.norm_projection = nn.Linear(4, 4)
        self.block = nn.Sequential(nn.Linear(4, 4), nn.RMSNorm(4), nn.Conv1d(4, 4, 1))
        self.block.append(nn.GroupNorm(2, 4))
        self.attention = nn.MultiheadAttention(4, 2)
        self.batch = nn.BatchNorm1d(4)
        self.final = nn.LayerNorm(4)
        self.final.requires_grad_(False)
        self.head = nn.Linear(4, 2)


RIGHT = {
    "ln_1.weight",
    "ln_1.bias",
    "block.1.weight",
    "block.3.weight",
    "block.3.bias",
    "final.weight",
    "final.bias",
    "head.weight",
    "head.bias",
}
# What to say about a parameter of another module, by the name of its class.
OTHERS = {
    "_Example": "the model itself, not to one of its layers. Freeze all parameters first.",
    "MultiheadAttention": "an attention layer. Freeze all parameters first.",
    "BatchNorm1d": "BatchNorm1d, which isn't one of the three kinds of norms.",
    "Conv1d": "a convolution.",
}


@checker
def check_freeze(function: Callable[[nn.Module], Any]) -> str:
    """Check a function that freezes everything except the norms and the head.

    Args:
        function: takes a model and changes it.

    Example:
        >>> def freeze(model):
        ...     for name, parameter in model.named_parameters():
        ...         parameter.requires_grad_("norm" in name or "head" in name)
        >>> check_freeze(freeze)
        Not yet. norm_projection.weight is trained, but it belongs to a linear layer.
    """
    model = _Example()
    with running():
        function(model)
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    everything = {name for name, _ in model.named_parameters()}
    if trained == everything - {"final.weight", "final.bias"}:
        raise NotYet("Your function changes nothing. Everything that was trained still is.")
    for name in sorted(trained - RIGHT, reverse=True):
        kind = type(model.get_submodule(name.rpartition(".")[0])).__name__
        layer = OTHERS.get(kind, "a linear layer.")
        raise NotYet(f"{name} is trained, but it belongs to {layer}")
    for name in sorted(RIGHT - trained):
        if name.startswith("head"):
            raise NotYet("The head is frozen.")
        if name.startswith("final"):
            raise NotYet(
                f"{name} was frozen before and still is. Call requires_grad_(True) on each norm."
            )
        kind = type(model.get_submodule(name.rpartition(".")[0])).__name__
        raise NotYet(f"{name} is frozen, but it belongs to a norm, {kind}.")
    return "It works for any names, and for norms that somebody had frozen."


WHICH = {
    "a": ("none", "LoRA freezes everything else, and norms have no LoRA term."),
    "b": ("beta", 'bias="all" unfreezes what is named bias. That includes beta, not gamma.'),
    "c": ("beta", "both are trained, in bfloat16. Which of them can take a step of 0.0002?"),
    "d": ("both", "the norms were converted to float32 before they were copied."),
    "e": ("none", "prepare_model_for_kbit_training freezes everything, and LoRA trains its terms."),
}


@checker
def check_which(a: Any = None, b: Any = None, c: Any = None, d: Any = None, e: Any = None) -> str:
    """Check which parameters change with five fine-tuning methods.

    Args:
        a: "both", "beta" or "none", as for the others.
        b: LoRA with all biases.
        c: LoRA with the norms in modules_to_save.
        d: the same after prepare_model_for_kbit_training.
        e: LoRA after prepare_model_for_kbit_training.

    Example:
        >>> check_which(a="none", b="beta", c="both", d="both", e="none")
        Not yet. c: both are trained, in bfloat16. Which of them can take a step of 0.0002?
    """
    for (letter, (right, why)), answer in zip(WHICH.items(), (a, b, c, d, e), strict=True):
        judge_choice(answer, letter, ("both", "beta", "none"), right, why)
    return "Print the names and dtypes of what's trained, and you'll see all five."
