"""Newer designs of the transformer, each as a small change to one language model.

The model is the one in `lnbook.chapters.shared.language_model`. Initial values and windows come
from NumPy, so with the same seed, all models see the same text, and all but nGPT start from the
same random matrices (one control rescales some of them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared import language_model
from lnbook.data.text import Text, windows
from lnbook.layers import DyT
from lnbook.training import fit, initialize_
from lnbook.transformer import (
    CausalLanguageModel,
    PreLNBlock,
    SelfAttention,
    TransformerBlock,
)

__all__ = [
    "DESIGNS",
    "CappedAttention",
    "Derf",
    "Design",
    "Scale",
    "SphereBlock",
    "SphereModel",
    "Trained",
    "block_losses",
    "build",
    "largest_logit",
    "loss_on",
    "loss_without",
    "project_",
    "stream_sizes",
    "train",
]

Array = NDArray[np.float64]

WIDTH, HEADS, LENGTH, BATCH = 32, 4, 32, 8
CAP = 50.0  # as in Gemma 2's attention
WEIGHTS, WINDOWS = range(2)  # each use of a seed has its own generator


class Derf(nn.Module):
    r"""Squash each feature with the error function, as a replacement for a norm.

    .. math::
        y_i = \gamma_i \operatorname{erf}(\alpha x_i + s) + \beta_i

    Source: Chen et al. 2026. :math:`\alpha` starts at 0.5 and :math:`s` at 0.

    Args:
        features: the number of features.
        alpha: initial value of :math:`\alpha`.

    Example:
        >>> Derf(2)(torch.tensor([0.0, 100.0])).tolist()
        [0.0, 1.0]
    """

    def __init__(self, features: int, alpha: float = 0.5) -> None:
        super().__init__()
        self.alpha = nn.Parameter(torch.full((1,), alpha))
        self.shift = nn.Parameter(torch.zeros(1))
        self.weight = nn.Parameter(torch.ones(features))
        self.bias = nn.Parameter(torch.zeros(features))

    def forward(self, x: Tensor) -> Tensor:
        """Return the squashed `x`, of the same shape."""
        return self.weight * torch.erf(self.alpha * x + self.shift) + self.bias


class Scale(nn.Module):
    """Multiply by a constant.

    Args:
        factor: the constant.

    Example:
        >>> Scale(0.5)(torch.tensor([2.0, 4.0])).tolist()
        [1.0, 2.0]
    """

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        """Return the scaled `x`, of the same shape."""
        y: Tensor = self.factor * x
        return y


class CappedAttention(SelfAttention):
    r"""Self-attention with soft-capped logits.

    .. math::
        A = \operatorname{softmax}\left(c \tanh\frac{q \cdot k}{c \sqrt{d}} + M\right)

    Source: Gemma 2, where :math:`c` is 50. It limits the logits without normalizing anything.

    Args:
        cap: :math:`c`.
        options: see `SelfAttention`.

    Raises:
        ValueError: when called, for a mask other than `is_causal`.

    Example:
        >>> attention = CappedAttention(8, 2, cap=5.0)
        >>> attention(torch.randn(3, 4, 8), is_causal=True).shape
        torch.Size([3, 4, 8])
    """

    def __init__(self, *args: Any, cap: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self.cap = cap

    def _attend(
        self,
        src: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        if attn_mask is not None or key_padding_mask is not None:
            raise ValueError("CappedAttention: expected no mask other than is_causal, but got one")
        query, key, value = self._projections(src)
        scores = query @ key.transpose(-2, -1) / math.sqrt(self.head_dim)
        scores = self.cap * torch.tanh(scores / self.cap)
        if is_causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
            scores = scores.masked_fill(later, -math.inf)
        weights = scores.softmax(-1)
        y = self.out_proj((weights @ value).transpose(1, 2).flatten(2))
        return y, weights if need_weights else None


def _unit(x: Tensor) -> Tensor:
    unit: Tensor = x / x.norm(dim=-1, keepdim=True)
    return unit


class _SphereAttention(SelfAttention):
    """nGPT's attention: unit queries and keys with a learned scale per feature."""

    def __init__(self, embed_dim: int, num_heads: int, dtype: torch.dtype | None) -> None:
        super().__init__(embed_dim, num_heads, bias=False, qk_norm="l2", dtype=dtype)
        self.scale = None  # replaced by `s_qk`, which has one scale per feature
        self.s_qk = _Scaled(embed_dim, 1.0, embed_dim**-0.5, dtype)

    def _projections(self, src: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        joint = nn.functional.linear(src, self.in_proj_weight)
        heads = joint.unflatten(-1, (3, self.num_heads, self.head_dim))
        query, key, value = (part.transpose(1, 2) for part in heads.unbind(2))
        scale = self.s_qk().view(self.num_heads, 1, self.head_dim)
        return math.sqrt(self.head_dim) * scale * _unit(query), scale * _unit(key), value


class _Scaled(nn.Module):
    """A learned vector in nGPT, stored at its own scale, which sets how fast Adam changes it."""

    def __init__(
        self, features: int, start: float, stored: float, dtype: torch.dtype | None
    ) -> None:
        super().__init__()
        self.factor = start / stored
        self.values = nn.Parameter(torch.full((features,), stored, dtype=dtype))

    def forward(self) -> Tensor:
        return self.factor * self.values


class SphereBlock(TransformerBlock):
    r"""An nGPT block: the stream moves along the unit sphere.

    .. math::
        h \leftarrow \operatorname{unit}\left(h + \alpha \odot
        \left(\operatorname{unit}(F(h)) - h\right)\right)

    for attention and for the feed-forward network, with a learned :math:`\alpha` that starts at
    0.05. Source: Loshchilov et al. 2025. Queries and keys are unit vectors with a learned scale.
    Cosines are multiplied by a learned scale before the activation. Simplified: GELU in place of
    SwiGLU.

    Args:
        d_model: width of the stream.
        nhead: the number of heads.
        dim_feedforward: width of the feed-forward network.
        options: see `TransformerBlock`; there are no norms, biases or dropout.

    Example:
        >>> block = SphereBlock(8, 2, 16)
        >>> block(torch.randn(3, 4, 8)).norm(dim=-1).allclose(torch.ones(3, 4))
        True
    """

    needs_final_norm = False
    norm_names = ()

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, **options: Any
    ) -> None:
        options = options | {"bias": False, "dropout": 0.0, "qk_norm": None}
        super().__init__(d_model, nhead, dim_feedforward, **options)
        dtype = options.get("dtype")
        self.self_attn = _SphereAttention(d_model, nhead, dtype)
        self.s_u = _Scaled(dim_feedforward, 1.0, 1.0, dtype)
        self.alpha1 = _Scaled(d_model, 0.05, d_model**-0.5, dtype)
        self.alpha2 = _Scaled(d_model, 0.05, d_model**-0.5, dtype)

    def feed_forward(self, x: Tensor) -> Tensor:
        """Apply the position-wise network to `x`; the result has the shape of `x`."""
        u = self.s_u() * math.sqrt(self.d_model) * self.linear1(x)
        y: Tensor = self.linear2(self.activation(u))
        return y

    def compute(self, x: Tensor, attention: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the stream after a step along the sphere for each branch in turn."""
        x = _unit(x)
        x = _unit(x + self.alpha1().abs() * (_unit(attention(x)) - x))
        return _unit(x + self.alpha2().abs() * (_unit(self.feed_forward(x)) - x))


class SphereModel(CausalLanguageModel):
    r"""nGPT: `CausalLanguageModel` with sphere blocks and a learned scale for each score.

    .. math::
        z = s_z \odot W h, \qquad h = \operatorname{Encoder}(\operatorname{unit}(E_w + P_t))

    Call `project_` after each step. Source: Loshchilov et al. 2025; learned positions in place of
    rotary ones.

    Args:
        vocab_size: the number of different tokens.
        options: see `CausalLanguageModel`.

    Example:
        >>> SphereModel(9, 4, 8, 2, 1, dim_feedforward=16)(torch.tensor([1, 2, 3])).shape
        torch.Size([3, 9])
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        d_model: int,
        nhead: int,
        num_layers: int,
        **options: Any,
    ) -> None:
        options = options | {"bias": False}
        sizes = (max_length, d_model, nhead, num_layers)
        super().__init__(vocab_size, *sizes, SphereBlock, **options)
        width = self.head.weight.shape[1]
        self.s_z = _Scaled(vocab_size, 1.0, width**-0.5, options.get("dtype"))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores (logits) for the token after each of `tokens`."""
        scores: Tensor = self.s_z() * super().forward(tokens)
        return scores


@torch.no_grad()
def project_(model: nn.Module) -> None:
    """Normalize the model's matrices to unit length along the width of the stream.

    These are the rows of matrices that read the stream (and of embeddings and head), and the
    columns of those that write to it.

    Args:
        model: a language model.

    Example:
        >>> model = SphereModel(9, 4, 8, 2, 1, dim_feedforward=16)
        >>> project_(model)
        >>> model.encoder.layers[0].linear2.weight.norm(dim=0).allclose(torch.ones(16))
        True
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 2:
            writes = name.endswith(("out_proj.weight", "linear2.weight"))
            parameter.div_(parameter.norm(dim=0 if writes else 1, keepdim=True))


def _plain(vocab_size: int, rng: np.random.Generator, layers: int, **options: Any) -> Any:
    return language_model.build(
        vocab_size,
        rng,
        PreLNBlock,
        layers=layers,
        width=WIDTH,
        heads=HEADS,
        length=LENGTH,
        start="pytorch",
        **options,
    )


def _sphere(
    vocab_size: int,
    rng: np.random.Generator,
    layers: int,
    alpha: float = 0.05,
    dtype: torch.dtype = torch.float64,
) -> SphereModel:
    options: dict[str, Any] = {"dim_feedforward": 4 * WIDTH, "activation": "gelu", "dtype": dtype}
    model = SphereModel(vocab_size, LENGTH, WIDTH, HEADS, layers, **options)
    initialize_(model, rng)
    for block in _blocks(model):
        block.alpha1.factor = block.alpha2.factor = alpha * WIDTH**0.5
    project_(model)
    return model


def _blocks(model: CausalLanguageModel) -> list[Any]:
    return list(model.encoder.layers)


def _scaled_norms(factor: Callable[[int, int], float]) -> Callable[[CausalLanguageModel], None]:
    def change(model: CausalLanguageModel) -> None:
        layers = _blocks(model)
        for number, block in enumerate(layers, start=1):
            for name in ("norm1", "norm2"):
                scale = Scale(factor(number, len(layers)))
                setattr(block, name, nn.Sequential(getattr(block, name), scale))

    return change


@torch.no_grad()
def _scaled_gains(model: CausalLanguageModel) -> None:
    for number, block in enumerate(_blocks(model), start=1):
        block.norm1.weight.mul_(number**-0.5)
        block.norm2.weight.mul_(number**-0.5)


@torch.no_grad()
def _scaled_weights(model: CausalLanguageModel) -> None:
    """Scale down what every branch initially writes, as in GPT-2."""
    layers = _blocks(model)
    for block in layers:
        for linear in (block.self_attn.out_proj, block.linear2):
            linear.weight.mul_((2 * len(layers)) ** -0.5)


def _capped(model: CausalLanguageModel) -> None:
    for block in _blocks(model):
        dtype = block.self_attn.in_proj_weight.dtype
        attention = CappedAttention(WIDTH, HEADS, cap=CAP, dtype=dtype)
        attention.load_state_dict(block.self_attn.state_dict())
        block.self_attn = attention


def _dyt(alpha: float) -> Callable[[int], nn.Module]:
    return lambda features: DyT(features, alpha)


def _derf(alpha: float) -> Callable[[int], nn.Module]:
    return lambda features: Derf(features, alpha)


class Design(NamedTuple):
    """What a design changes in the Pre-LN model.

    Attributes:
        make: builds the model from vocabulary size, generator, layers and options.
        options: options of the model.
        change: changes the model after its initialization.
        projects: whether `project_` is called after each step.

    Example:
        >>> Design(options={"norm": "dyt"}).projects
        False
    """

    make: Callable[..., Any] = _plain
    options: Mapping[str, Any] = MappingProxyType({})
    change: Callable[[CausalLanguageModel], None] = lambda model: None
    projects: bool = False


def _constant(_number: int, depth: int) -> float:
    """The geometric mean of LayerNorm Scaling's factors."""
    return math.exp(-math.lgamma(depth + 1) / (2 * depth))


DESIGNS: Mapping[str, Design] = MappingProxyType(
    {
        "Pre-LN": Design(),
        "scaled norms": Design(change=_scaled_norms(lambda number, _: number**-0.5)),
        "scaled gains": Design(change=_scaled_gains),
        "constant scale": Design(change=_scaled_norms(_constant)),
        "scaled weights": Design(change=_scaled_weights),
        "QK-norm": Design(options={"qk_norm": "layer_norm"}),
        "soft cap": Design(change=_capped),
        "DyT": Design(options={"norm": _dyt(0.5)}),
        "DyT, 1": Design(options={"norm": _dyt(1.0)}),
        "Derf": Design(options={"norm": _derf(0.5)}),
        "Derf, 1": Design(options={"norm": _derf(1.0)}),
        "nGPT": Design(make=_sphere, projects=True),
        "nGPT, larger steps": Design(make=_sphere, options={"alpha": 0.25}, projects=True),
        "nGPT, free weights": Design(make=_sphere),
    }
)


def build(
    design: str, vocab_size: int, seed: int, layers: int = 4, dtype: torch.dtype = torch.float64
) -> CausalLanguageModel:
    """Build a language model with one of the designs.

    Args:
        design: a name in `DESIGNS`.
        vocab_size: the number of different characters.
        seed: the seed for the initial values.
        layers: the number of blocks.
        dtype: the dtype of the parameters.

    Raises:
        ValueError: there's no design with this name.

    Example:
        >>> one, other = build("Pre-LN", 9, 0, 2), build("DyT", 9, 0, 2)
        >>> torch.equal(one.head.weight, other.head.weight)
        True
    """
    if design not in DESIGNS:
        known = ", ".join(DESIGNS)
        raise ValueError(f"build: expected design to be one of {known}, but got {design!r}")
    found = DESIGNS[design]
    rng = np.random.default_rng([seed, WEIGHTS])
    model: CausalLanguageModel = found.make(vocab_size, rng, layers, dtype=dtype, **found.options)
    found.change(model)
    return model.to(dtype)


@dataclass
class Trained:
    """A trained model and its test losses.

    Attributes:
        model: the model after the last step.
        steps: the steps after which it was tested.
        losses: the test loss after each of them.
        fitted: the loss on windows of the training text after each of them.
        logits: the largest attention logit after each of them.

    Example:
        >>> Trained(nn.Identity(), [10, 20], [2.5, math.inf], [2.0, 3.0], [1.0, 1.0]).final
        inf
    """

    model: Any
    steps: list[int]
    losses: list[float]
    fitted: list[float]
    logits: list[float]

    @property
    def final(self) -> float:
        """The test loss at the end, or infinity if the run diverged."""
        return self.losses[-1] if math.isfinite(self.losses[-1]) else math.inf


def train(
    text: Text,
    design: str,
    *,
    layers: int = 4,
    lr: float = 3e-3,
    steps: int = 150,
    seed: int = 0,
    every: int = 0,
    decay: bool = False,
    bfloat16: bool = False,
    dtype: torch.dtype = torch.float64,
) -> Trained:
    """Train a design with Adam, on 8 windows of 32 characters per step.

    Args:
        text: what to train on.
        design: a name in `DESIGNS`.
        layers: the number of blocks, of width 32.
        lr: the learning rate.
        steps: the number of steps.
        seed: the seed for initial values and windows.
        every: the number of steps between tests; 0 to test only at the end.
        decay: whether the learning rate falls linearly to zero.
        bfloat16: whether the matrices are rounded to bfloat16 after each step.
        dtype: the dtype of the computation.

    Returns:
        The model, its losses and its largest logits.

    Raises:
        ValueError: there's no design with this name.

    Example:
        >>> ab = torch.tensor([0, 1] * 50)
        >>> train(Text("ab", ab, ab), "nGPT", layers=1, steps=60, lr=0.03).final < 0.69
        True
    """
    model = build(design, len(text.alphabet), seed, layers, dtype)
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    if DESIGNS[design].projects:
        optimizer.register_step_post_hook(lambda *_: project_(model))
    if bfloat16:
        _round_(model)
        optimizer.register_step_post_hook(lambda *_: _round_(model))
    tested = language_model.held_out(text, LENGTH)
    history = fit(
        model,
        _batches(text, seed, steps),
        language_model.loss,
        optimizer,
        schedule=(lambda step: 1 - (step - 1) / steps) if decay else None,
        measure={
            "loss": lambda model: language_model.loss(model, tested).item(),
            "fitted": lambda model: loss_on(model, text.train),
            "logit": lambda _: largest_logit(model, tested[0]),
        },
        every=every,
        label=f"{design}, seed {seed}",
        total=steps,
    )
    found = history.measures
    return Trained(model, history.steps, found["loss"], found["fitted"], found["logit"])


def _batches(text: Text, seed: int, steps: int) -> Iterator[tuple[Tensor, Tensor]]:
    rng = np.random.default_rng([seed, WINDOWS])
    return (windows(rng, text.train, BATCH, LENGTH) for _ in range(steps))


@torch.no_grad()
def _round_(model: nn.Module) -> None:
    for parameter in model.parameters():
        if parameter.ndim == 2:
            parameter.copy_(parameter.bfloat16())


@torch.no_grad()
def loss_on(model: nn.Module, numbers: Tensor) -> float:
    """Return the loss on 64 windows of a text.

    Args:
        model: a language model.
        numbers: a text of shape `(T,)`.

    Example:
        >>> model, ab = build("Pre-LN", 2, 0, 1), torch.tensor([0, 1] * 50)
        >>> loss_on(model, ab) > 0.1
        True
    """
    rng = np.random.default_rng(language_model.TEST_SEED)
    return language_model.loss(model, windows(rng, numbers, 64, LENGTH)).item()


@torch.no_grad()
def largest_logit(model: CausalLanguageModel, x: Tensor) -> float:
    """Return the largest absolute attention logit in any block, before a soft cap.

    Args:
        model: a model of any design.
        x: characters, integers of shape `(N, L)`.

    Example:
        >>> model = build("QK-norm", 9, 0, 2)
        >>> largest_logit(model, torch.tensor([[1, 2, 3]])) <= 8 ** 0.5
        True
    """
    found: list[float] = []

    def hook(attention: Any, inputs: tuple[Tensor, ...], _: Any) -> None:
        query, key, _value = attention._projections(inputs[0])
        factor = 1.0 if attention.qk_norm == "l2" else attention.head_dim**-0.5
        found.append(factor * (query @ key.transpose(-2, -1)).abs().max().item())

    hooks = [block.self_attn.register_forward_hook(hook) for block in _blocks(model)]
    try:
        model(x)
    finally:
        for handle in hooks:
            handle.remove()
    return max(found)


@torch.no_grad()
def stream_sizes(model: CausalLanguageModel, x: Tensor) -> Array:
    """Return the mean square of the stream after each block, shape `(layers,)`.

    Args:
        model: a model of any design.
        x: characters, integers of shape `(N, L)`.

    Example:
        >>> stream_sizes(build("Pre-LN", 9, 0, 2), torch.tensor([[1, 2, 3]])).shape
        (2,)
    """
    _scores, stream = language_model.forward(model, x)
    return np.array([rows.square().mean().item() for rows in stream])


@torch.no_grad()
def loss_without(
    model: CausalLanguageModel, batch: tuple[Tensor, Tensor], blocks: Collection[int]
) -> float:
    """Return how much the loss rises if you remove some blocks together.

    Args:
        model: a model of any design.
        batch: characters and next characters, each of shape `(N, L)`.
        blocks: the blocks to remove, counted from 0.

    Example:
        >>> x = torch.tensor([[1, 2, 3]])
        >>> loss_without(build("Pre-LN", 9, 0, 2), (x, x), [])
        0.0
    """
    layers = model.encoder.layers
    whole = language_model.loss(model, batch).item()
    rest = [block for number, block in enumerate(layers) if number not in blocks]
    try:
        model.encoder.layers = nn.ModuleList(rest)
        return language_model.loss(model, batch).item() - whole
    finally:
        model.encoder.layers = layers


def block_losses(model: CausalLanguageModel, batch: tuple[Tensor, Tensor]) -> Array:
    """Return, for each block, how much the loss rises if you remove it.

    Args:
        model: a model of any design.
        batch: characters and next characters, each of shape `(N, L)`.

    Returns:
        Shape `(layers,)`.

    Example:
        >>> x = torch.tensor([[1, 2, 3]])
        >>> block_losses(build("Pre-LN", 9, 0, 2), (x, x)).shape
        (2,)
    """
    numbers = range(len(model.encoder.layers))
    return np.array([loss_without(model, batch, [number]) for number in numbers])
