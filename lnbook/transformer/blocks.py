r"""Transformer blocks: four placements of the norms around the same two branches.

The branches are self-attention and the feed-forward network
:math:`F(x) = W_2 \, \phi(W_1 x + b_1) + b_2`. Each class has the two equations of its block in its
`compute` method; dropout, if enabled, applies to what a branch adds to the residual stream.
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias, TypedDict

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from lnbook._check import checked_between, checked_bool, checked_count, checked_eps
from lnbook._check_tensors import Device
from lnbook.transformer.attention import SelfAttention, check_sequence
from lnbook.transformer.initialization import deepnorm_init_
from lnbook.transformer.normalization import Norm, make_norm

__all__ = [
    "BlockOptions",
    "DeepNormBlock",
    "PeriLNBlock",
    "PostLNBlock",
    "PreLNBlock",
    "TransformerBlock",
]

Branch: TypeAlias = Callable[[Tensor], Tensor]
Activation: TypeAlias = str | Callable[[Tensor], Tensor]

ACTIVATIONS: dict[str, Branch] = {"relu": F.relu, "gelu": F.gelu}


class BlockOptions(TypedDict, total=False):
    """The options of every block, for classes that create blocks.

    Example:
        >>> options: BlockOptions = {"norm": "rms_norm", "dropout": 0.0}
        >>> type(PreLNBlock(8, 2, **options).norm1).__name__
        'RMSNorm'
    """

    dim_feedforward: int
    dropout: float
    activation: Activation
    layer_norm_eps: float
    norm: Norm
    qk_norm: str | None
    qk_scale: float
    bias: bool
    device: Device
    dtype: torch.dtype | None


class TransformerBlock(nn.Module, abc.ABC):
    """Base class of the blocks: parameters, masks and branches; `compute` places the norms.

    Arguments and parameters have the same names as in `torch.nn.TransformerEncoderLayer`, so state
    dicts are interchangeable where the equations are the same. The input is always batch first.

    Args:
        d_model: size of the last dimension of the input, a multiple of `nhead`.
        nhead: the number of attention heads.
        dim_feedforward: the width of the feed-forward network.
        dropout: dropout probability in training mode, for the attention weights, the activations in
            the feed-forward network, and what each branch adds.
        activation: `"relu"`, `"gelu"` or a callable.
        layer_norm_eps: eps of a norm given by name, if it has one.
        norm: `"layer_norm"`, `"rms_norm"`, `"dyt"`, `"none"`, or a callable that takes
            `d_model` and returns a module.
        qk_norm: None, `"l2"`, `"layer_norm"` or `"rms_norm"`: see `SelfAttention`.
        qk_scale: initial scale of the `"l2"` norm.
        bias: whether the linear layers, and a norm given by name, have a bias.
        device: device of the parameters.
        dtype: dtype of the parameters; PyTorch's default dtype if None.

    Shape:
        Input and output: `(N, L, d_model)` or `(L, d_model)`, of the parameters' dtype.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        ValueError: at construction, for a size below 1, a `d_model` that is not a multiple of
            `nhead`, a probability outside 0 to 1, a negative or infinite eps, or an unknown name.

    Example:
        >>> block = PreLNBlock(8, nhead=2, dim_feedforward=16)
        >>> isinstance(block, TransformerBlock), block.needs_final_norm
        (True, True)
        >>> block(torch.zeros(4, 5, 8)).shape
        torch.Size([4, 5, 8])
    """

    # Whether a stack of these blocks needs a final norm to normalize its output.
    needs_final_norm: ClassVar[bool]
    norm_names: ClassVar[tuple[str, ...]] = ("norm1", "norm2")

    norm1: Branch
    norm2: Branch
    dropout1: Branch
    dropout2: Branch

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        *,
        norm: Norm = "layer_norm",
        qk_norm: str | None = None,
        qk_scale: float = 10.0,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.d_model = checked_count(d_model, "d_model", owner, least=1)
        nhead = checked_count(nhead, "nhead", owner, least=1)
        if self.d_model % nhead:
            raise ValueError(
                f"{owner}: expected d_model to be a multiple of nhead, "
                f"but got d_model={d_model} and nhead={nhead}"
            )
        width = checked_count(dim_feedforward, "dim_feedforward", owner, least=1)
        dropout = checked_between(dropout, "dropout", owner, 0.0, 1.0)
        checked_bool(bias, "bias", owner)
        self.activation = _checked_activation(activation, owner)
        where: dict[str, Any] = {"device": device, "dtype": dtype}
        norm_options = {"eps": checked_eps(layer_norm_eps, owner), "bias": bias, **where}

        # In this order, the same seed gives the weights of torch.nn.TransformerEncoderLayer.
        self.self_attn = SelfAttention(
            d_model, nhead, dropout, bias, qk_norm=qk_norm, qk_scale=qk_scale, **where
        )
        self.linear1 = nn.Linear(d_model, width, bias=bias, **where)
        self.dropout = nn.Dropout(dropout)
        self.linear2 = nn.Linear(width, d_model, bias=bias, **where)
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)
        for name in self.norm_names:
            self.add_module(name, make_norm(norm, self.d_model, **norm_options))

    @abc.abstractmethod
    def compute(self, x: Tensor, attention: Branch) -> Tensor:
        """Return the block's output: its equations, with the masks already in `attention`."""

    def feed_forward(self, x: Tensor) -> Tensor:
        """Apply the position-wise network to `x`; the result has the shape of `x`."""
        y: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return y

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return the output of the block and, with `need_weights`, the attention weights.

        Args:
            src: tensor of shape `(N, L, d_model)` or `(L, d_model)`.
            src_mask: of shape `(L, L)` (query, key) or `(N * nhead, L, L)`; bool, where True hides
                a key, or floating-point, added to the scores.
            src_key_padding_mask: of shape `(N, L)` or `(L,)`; bool, where True hides a key, or
                floating-point, added to its scores.
            is_causal: whether each token sees only itself and earlier tokens. In PyTorch this is a
                hint about `src_mask` and requires it; here it works alone or combined with the
                masks.
            need_weights: whether to also return the weights, of shape `(N, nhead, L, L)` or
                `(nhead, L, L)`, before dropout.

        A token whose keys are all hidden gets zero weights, as in PyTorch's layer in training mode.

        Raises:
            TypeError: `src` or a mask is not a tensor, or a flag is not a bool.
            RuntimeError: a shape, dtype or device doesn't match.
        """
        check_sequence(src, self.d_model, self.linear1.weight, type(self).__name__)
        weights: list[Tensor] = []

        def attention(x: Tensor) -> Tensor:
            result = self.self_attn(x, src_mask, src_key_padding_mask, is_causal, need_weights)
            if need_weights:
                weights.append(result[1])
            y: Tensor = result[0] if need_weights else result
            return y

        y = self.compute(src, attention)
        return (y, weights[0]) if need_weights else y


class PostLNBlock(TransformerBlock):
    r"""The Post-LN block of the original transformer: normalize after each addition.

    .. math::
        x' = \operatorname{LN}(x + \operatorname{Attention}(x)), \qquad
        y = \operatorname{LN}(x' + F(x'))

    Source: Vaswani et al. 2017, section 3.1. Same equations as
    `torch.nn.TransformerEncoderLayer(norm_first=False)`.

    Arguments, shapes and errors are as in `TransformerBlock`.

    Example:
        >>> block = PostLNBlock(4, 2, 8, dropout=0.0)
        >>> y = block(torch.randn(2, 3, 4), is_causal=True)
        >>> y.shape, bool(y.mean(-1).abs().max() < 1e-6)
        (torch.Size([2, 3, 4]), True)
    """

    needs_final_norm = False

    def compute(self, x: Tensor, attention: Branch) -> Tensor:
        """Return LN(x + F(x)) for each branch in turn."""
        x = self.norm1(x + self.dropout1(attention(x)))
        return self.norm2(x + self.dropout2(self.feed_forward(x)))


class PreLNBlock(TransformerBlock):
    r"""The Pre-LN block of most later models: normalize the input of each branch.

    .. math::
        x' = x + \operatorname{Attention}(\operatorname{LN}(x)), \qquad
        y = x' + F(\operatorname{LN}(x'))

    Source: Xiong et al. 2020, table 1. Same equations as
    `torch.nn.TransformerEncoderLayer(norm_first=True)`. The residual stream itself is never
    normalized, so a stack of these blocks needs a final norm.

    Arguments, shapes and errors are as in `TransformerBlock`.

    Example:
        >>> block = PreLNBlock(4, 2, 8, dropout=1.0)
        >>> x = torch.randn(2, 3, 4)
        >>> torch.equal(block(x), x)  # with every branch dropped, the residual is left
        True
    """

    needs_final_norm = True

    def compute(self, x: Tensor, attention: Branch) -> Tensor:
        """Return x + F(LN(x)) for each branch in turn."""
        x = x + self.dropout1(attention(self.norm1(x)))
        return x + self.dropout2(self.feed_forward(self.norm2(x)))


class PeriLNBlock(TransformerBlock):
    r"""Peri-LN: normalize both the input and the output of each branch.

    .. math::
        x' = x + \operatorname{LN}(\operatorname{Attention}(\operatorname{LN}(x))), \qquad
        y = x' + \operatorname{LN}(F(\operatorname{LN}(x')))

    Source: Kim et al. 2025. The output norms set the scale of what each branch adds; the residual
    stream still grows with depth, and a stack needs a final norm. `norm1` and `norm2` normalize the
    branch inputs, as in `PreLNBlock`; `norm1_out` and `norm2_out` normalize the outputs. Dropout
    comes after them, so it doesn't affect their statistics.

    Arguments, shapes and errors are as in `TransformerBlock`.

    Example:
        >>> block = PeriLNBlock(4, 2, 8, dropout=0.0)
        >>> x = torch.randn(2, 3, 4)
        >>> torch.allclose(block(x).mean(-1), x.mean(-1), atol=1e-5)  # each branch adds mean 0
        True
    """

    needs_final_norm = True
    norm_names = ("norm1", "norm1_out", "norm2", "norm2_out")

    norm1_out: Branch
    norm2_out: Branch

    def compute(self, x: Tensor, attention: Branch) -> Tensor:
        """Return x + LN(F(LN(x))) for each branch in turn."""
        x = x + self.dropout1(self.norm1_out(attention(self.norm1(x))))
        return x + self.dropout2(self.norm2_out(self.feed_forward(self.norm2(x))))


class DeepNormBlock(TransformerBlock):
    r"""DeepNorm: Post-LN with a residual that outweighs the branches early in training.

    .. math::
        x' = \operatorname{LN}(\alpha x + \operatorname{Attention}(x)), \qquad
        y = \operatorname{LN}(\alpha x' + F(x')), \qquad
        \alpha = (2N)^{1/4}, \quad \beta = (8N)^{-1/4}

    Source: Wang et al. 2022, DeepNet, with the constants for a stack of :math:`N` blocks (encoder
    only or decoder only). :math:`\beta` is used only at initialization: see `deepnorm_init_`.

    Args:
        num_layers: :math:`N`, the number of blocks in the stack that this block is for.

    All other arguments, shapes and errors are as in `TransformerBlock`.

    Example:
        >>> block = DeepNormBlock(4, 2, 8, num_layers=8)
        >>> block.alpha, round(block.beta, 4)
        (2.0, 0.3536)
    """

    needs_final_norm = False

    def __init__(self, *args: Any, num_layers: int, **options: Any) -> None:
        super().__init__(*args, **options)
        depth = checked_count(num_layers, "num_layers", "DeepNormBlock", least=1)
        self.alpha = (2.0 * depth) ** 0.25
        self.beta = (8.0 * depth) ** -0.25
        deepnorm_init_(self, self.beta)

    def compute(self, x: Tensor, attention: Branch) -> Tensor:
        """Return LN(alpha x + F(x)) for each branch in turn."""
        x = self.norm1(self.alpha * x + self.dropout1(attention(x)))
        return self.norm2(self.alpha * x + self.dropout2(self.feed_forward(x)))

    def extra_repr(self) -> str:
        """Return the constants of the equations."""
        return f"alpha={self.alpha:.4f}, beta={self.beta:.4f}"


def _checked_activation(activation: Any, owner: str) -> Branch:
    if callable(activation):
        branch: Branch = activation
        return branch
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS[activation]
    raise (ValueError if isinstance(activation, str) else TypeError)(
        f"{owner}: expected activation to be 'relu', 'gelu' or a callable, but got {activation!r}"
    )
