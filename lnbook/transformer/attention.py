"""Multi-head self-attention: a plain function, and a module that skips unneeded weights."""

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from lnbook._check import checked_between, checked_bool, checked_count
from lnbook._check_tensors import Device, autocasts, check_tensor
from lnbook.transformer.masks import merge_masks
from lnbook.transformer.normalization import make_norm

__all__ = ["SelfAttention", "dot_product_attention"]

_PLAIN = "dot_product_attention"


def dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    dropout: float = 0.0,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Return the attention output and weights, with one step for each part of the equation.

    .. math::
        A = \operatorname{softmax}\left(s \, Q K^\top + M\right), \qquad Y = A V

    Source: Vaswani et al. 2017, eq. 1, where :math:`s = 1/\sqrt{d}`. It computes the same output as
    `torch.nn.functional.scaled_dot_product_attention`, which doesn't return :math:`A`. As in that
    function, a query whose keys are all hidden gets zero weights and a zero output.

    Args:
        query: :math:`Q`, of shape `(*, L, d)`.
        key: :math:`K`, of shape `(*, S, d)`.
        value: :math:`V`, of shape `(*, S, e)`.
        mask: broadcastable to `(*, L, S)`; bool, where True means the key is visible, or
            floating-point, added to the scores as :math:`M`.
        is_causal: whether query :math:`i` sees only the keys up to :math:`i`.
        dropout: probability of dropping each weight before it multiplies the values.
        scale: :math:`s`; :math:`1/\sqrt{d}` if None.

    Returns:
        The output `(*, L, e)` and the weights `(*, L, S)` before dropout, in the dtype of
        `query`. The softmax is computed in at least float32.

    Raises:
        TypeError: an argument is not a tensor, `is_causal` is not a bool, or a number is not real.
        RuntimeError: the shapes, dtypes or devices don't match.
        ValueError: `dropout` is not between 0 and 1, or `scale` is NaN.

    Example:
        >>> value = torch.tensor([[1.0], [3.0]])
        >>> y, weights = dot_product_attention(torch.zeros(2, 4), torch.ones(2, 4), value)
        >>> y.tolist(), weights.tolist()
        ([[2.0], [2.0]], [[0.5, 0.5], [0.5, 0.5]])
    """
    _check_attention(query, key, value, mask)
    checked_bool(is_causal, "is_causal", _PLAIN)
    dropout = checked_between(dropout, "dropout", _PLAIN, 0.0, 1.0)
    if scale is not None:
        scale = checked_between(scale, "scale", _PLAIN, -math.inf, math.inf)
    dtype = torch.promote_types(query.dtype, torch.float32)
    scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = scale * query.to(dtype) @ key.to(dtype).transpose(-2, -1)
    if is_causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    if mask is None:
        weights = scores.softmax(-1)
    else:
        shows = mask.dtype == torch.bool
        scores = scores.masked_fill(~mask, -math.inf) if shows else scores + mask
        # A row with only -inf would make the softmax and its derivative NaN.
        sees_nothing = (scores == -math.inf).all(-1, keepdim=True)
        weights = scores.masked_fill(sees_nothing, 0.0).softmax(-1).masked_fill(sees_nothing, 0.0)
    y = F.dropout(weights, dropout) @ value.to(dtype)
    return y.to(query.dtype), weights.to(query.dtype)


class SelfAttention(nn.Module):
    r"""Multi-head self-attention with the parameters of `torch.nn.MultiheadAttention`.

    .. math::
        Y = \left[A_1 V_1, \dots, A_h V_h\right] W_O, \qquad
        A_i = \operatorname{softmax}\left(\frac{Q_i K_i^\top}{\sqrt{d_h}} + M\right), \qquad
        [Q, K, V] = x \, [W_Q, W_K, W_V]

    Source: Vaswani et al. 2017, section 3.2. State dicts are interchangeable with those of
    `torch.nn.MultiheadAttention`. Differences: the input is always batch first, query, key and
    value come from the same input, and the weights are computed only on request. Otherwise the
    fused kernel reads the projections in place, and causality needs no mask, which makes it fast.

    `qk_norm` normalizes each head's query and key before they are multiplied:

    - `"l2"`: :math:`g \, \hat{q} \cdot \hat{k}` with unit vectors and one learned scale :math:`g`
      instead of :math:`1/\sqrt{d_h}` (Henry et al. 2020);
    - `"layer_norm"`: LN of q and of k with a learned gain and no bias, shared by the heads
      (Dehghani et al. 2023, ViT-22B); `"rms_norm"`: the same with RMSNorm.

    Args:
        embed_dim: size of the last dimension of the input, a multiple of `num_heads`.
        num_heads: the number of heads, each of size `embed_dim // num_heads`.
        dropout: probability of dropping each attention weight in training mode.
        bias: whether the four projections have a bias.
        qk_norm: None, `"l2"`, `"layer_norm"` or `"rms_norm"`.
        qk_scale: initial :math:`g` for `"l2"`. Henry et al. use :math:`\log_2(L^2 - L)` for
            sequences of length :math:`L`: 10 for 32 to 33 tokens.
        device: device of the parameters.
        dtype: dtype of the parameters; PyTorch's default dtype if None.

    Shape:
        Input and output: `(N, L, embed_dim)` or `(L, embed_dim)`; weights on request:
        `(N, num_heads, L, L)` or `(num_heads, L, L)`.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        ValueError: at construction, for a size below 1, an `embed_dim` that is not a multiple of
            `num_heads`, a probability outside 0 to 1, or an unknown `qk_norm`.

    Example:
        >>> attention = SelfAttention(4, 2, bias=False)
        >>> with torch.no_grad():
        ...     _ = attention.in_proj_weight.zero_()
        >>> _, weights = attention(torch.ones(3, 4), is_causal=True, need_weights=True)
        >>> weights[0]
        tensor([[1.0000, 0.0000, 0.0000],
                [0.5000, 0.5000, 0.0000],
                [0.3333, 0.3333, 0.3333]], grad_fn=<SelectBackward0>)
    """

    batch_first = True  # read by torch.nn.TransformerEncoder
    in_proj_bias: nn.Parameter | None
    scale: nn.Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        qk_norm: str | None = None,
        qk_scale: float = 10.0,
        device: Device = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.embed_dim = checked_count(embed_dim, "embed_dim", "SelfAttention", least=1)
        self.num_heads = checked_count(num_heads, "num_heads", "SelfAttention", least=1)
        if self.embed_dim % self.num_heads:
            raise ValueError(
                "SelfAttention: expected embed_dim to be a multiple of num_heads, "
                f"but got embed_dim={embed_dim} and num_heads={num_heads}"
            )
        self.head_dim = self.embed_dim // self.num_heads
        self.dropout = checked_between(dropout, "dropout", "SelfAttention", 0.0, 1.0)
        checked_bool(bias, "bias", "SelfAttention")
        where: dict[str, Any] = {"device": device, "dtype": dtype}

        self.in_proj_weight = nn.Parameter(torch.empty(3 * self.embed_dim, self.embed_dim, **where))
        in_proj_bias = nn.Parameter(torch.empty(3 * self.embed_dim, **where)) if bias else None
        self.register_parameter("in_proj_bias", in_proj_bias)
        self.out_proj = nn.Linear(self.embed_dim, self.embed_dim, bias=bias, **where)
        self._make_qk_norm(qk_norm, qk_scale, where)
        self._reset_projections()

    def forward(
        self,
        src: Tensor,
        attn_mask: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Return the output and, with `need_weights`, the weights of each head.

        Args:
            src: floating-point tensor of shape `(N, L, embed_dim)` or `(L, embed_dim)`.
            attn_mask: of shape `(L, L)` (query, key) or `(N * num_heads, L, L)`; bool, where True
                hides a key, or floating-point, added to the scores.
            key_padding_mask: of shape `(N, L)`, or `(L,)` for one sequence; bool, where True hides
                a key, or floating-point, added to its scores.
            is_causal: whether each token sees only itself and earlier tokens. This requires no
                mask, and can be combined with the masks.
            need_weights: whether to compute and return the weights (before dropout). This uses
                `dot_product_attention`, which takes more time and memory but has derivatives of
                every order.

        If all keys are hidden from a token, its weights are zero and its output is the bias of the
        output projection, not NaN.

        Raises:
            TypeError: `src` or a mask is not a tensor, or a flag is not a bool.
            RuntimeError: a shape, dtype or device doesn't match.
        """
        check_sequence(src, self.embed_dim, self.in_proj_weight, "SelfAttention")
        checked_bool(is_causal, "is_causal", "SelfAttention")
        checked_bool(need_weights, "need_weights", "SelfAttention")
        if src.dim() == 2:
            padding = key_padding_mask
            padding = padding[None] if isinstance(padding, Tensor) else padding
            y, weights = self._attend(src[None], attn_mask, padding, is_causal, need_weights)
            y, weights = y[0], None if weights is None else weights[0]
        else:
            y, weights = self._attend(src, attn_mask, key_padding_mask, is_causal, need_weights)
        return y if weights is None else (y, weights)

    def extra_repr(self) -> str:
        """Return the arguments not shown by submodules."""
        text = f"{self.embed_dim}, {self.num_heads}, dropout={self.dropout}"
        return text if self.qk_norm is None else f"{text}, qk_norm={self.qk_norm!r}"

    def _attend(
        self,
        src: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        query, key, value = self._projections(src)
        mask, is_causal = merge_masks(query, attn_mask, key_padding_mask, is_causal)
        dropout = self.dropout if self.training else 0.0
        scale = 1.0 if self.qk_norm == "l2" else None  # the learned scale is part of the query
        weights = None
        if need_weights:
            heads, weights = dot_product_attention(
                query, key, value, mask, is_causal=is_causal, dropout=dropout, scale=scale
            )
        else:
            heads = F.scaled_dot_product_attention(
                query, key, value, mask, dropout, is_causal, scale=scale
            )
        y = self.out_proj(heads.transpose(1, 2).flatten(2))
        return y, weights

    def _projections(self, src: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return query, key and value, each of shape `(N, num_heads, L, head_dim)`."""
        joint = F.linear(src, self.in_proj_weight, self.in_proj_bias)
        heads = joint.unflatten(-1, (3, self.num_heads, self.head_dim))
        query, key, value = (part.transpose(1, 2) for part in heads.unbind(2))
        if self.scale is not None:
            query = self.scale.to(query.dtype) * _unit(query)
            key = _unit(key)
        elif self.qk_norm is not None:
            query, key = self.q_norm(query), self.k_norm(key)
        return query, key, value

    def _make_qk_norm(self, qk_norm: str | None, qk_scale: float, where: dict[str, Any]) -> None:
        if qk_norm not in (None, "l2", "layer_norm", "rms_norm"):
            raise ValueError(
                "SelfAttention: expected qk_norm to be None, 'l2', 'layer_norm' or 'rms_norm', "
                f"but got {qk_norm!r}"
            )
        self.qk_norm = qk_norm
        start = checked_between(qk_scale, "qk_scale", "SelfAttention", -math.inf, math.inf)
        scale = nn.Parameter(torch.full((), start, **where)) if qk_norm == "l2" else None
        self.register_parameter("scale", scale)
        if qk_norm in ("layer_norm", "rms_norm"):
            self.q_norm = make_norm(qk_norm, self.head_dim, bias=False, **where)
            self.k_norm = make_norm(qk_norm, self.head_dim, bias=False, **where)

    def _reset_projections(self) -> None:
        # As in torch.nn.MultiheadAttention, so that the same seed gives the same weights.
        nn.init.xavier_uniform_(self.in_proj_weight)
        for bias in (self.in_proj_bias, self.out_proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)


def check_sequence(src: Any, d_model: int, weight: Tensor, owner: str) -> None:
    """Check that `src` is a sequence, or a batch of sequences, that matches a layer's `weight`.

    Raises:
        TypeError: `src` is not a tensor.
        RuntimeError: its shape, dtype or device is wrong. Under autocast, any floating dtype is
            allowed.
    """
    check_tensor(src, "src", owner)
    if src.dim() not in (2, 3) or src.shape[-1] != d_model:
        raise RuntimeError(
            f"{owner}: expected src of shape (N, L, {d_model}) or (L, {d_model}), "
            f"but got {tuple(src.shape)}"
        )
    if src.device != weight.device:
        raise RuntimeError(
            f"{owner}: expected src to be on the device of the parameters, {weight.device}, "
            f"but got src on {src.device}"
        )
    if src.dtype != weight.dtype and not (src.is_floating_point() and autocasts(src.device)):
        raise RuntimeError(
            f"{owner}: expected src to have the dtype of the parameters, {weight.dtype}, "
            f"but got {src.dtype}"
        )


def _check_attention(query: Any, key: Any, value: Any, mask: Any) -> None:
    given = {"query": query, "key": key, "value": value}
    for name, tensor in given.items() if mask is None else [*given.items(), ("mask", mask)]:
        check_tensor(tensor, name, _PLAIN)
        if tensor.device != query.device:
            raise RuntimeError(
                f"{_PLAIN}: expected {name} to be on the device of query, {query.device}, "
                f"but got {tensor.device}"
            )
        if not tensor.is_floating_point() and not (name == "mask" and tensor.dtype == torch.bool):
            raise RuntimeError(
                f"{_PLAIN}: expected {name} to be floating{' or bool' * (name == 'mask')}, "
                f"but got {tensor.dtype}"
            )
    sizes = [tuple(tensor.shape) for tensor in given.values()]
    if min(map(len, sizes)) < 2 or sizes[0][-1] != sizes[1][-1] or sizes[1][-2] != sizes[2][-2]:
        raise RuntimeError(
            f"{_PLAIN}: expected query (*, L, d), key (*, S, d) and value (*, S, e), "
            f"but got {', '.join(map(str, sizes))}"
        )
    _check_broadcasts(sizes, None if mask is None else tuple(mask.shape))


def _check_broadcasts(sizes: list[tuple[int, ...]], mask: tuple[int, ...] | None) -> None:
    """Raise unless the leading dimensions broadcast, and the mask broadcasts to the weights."""
    query, key, value = sizes
    try:
        leading = torch.broadcast_shapes(query[:-2], key[:-2], value[:-2])
        weights = (*leading, query[-2], key[-2])
        if mask is None or tuple(torch.broadcast_shapes(weights, mask)) == weights:
            return
    except RuntimeError:
        pass
    raise RuntimeError(
        f"{_PLAIN}: expected leading dimensions that broadcast and a mask that broadcasts to "
        f"(*, {query[-2]}, {key[-2]}), but got query {query}, key {key}, value {value} and "
        f"mask {mask}"
    )


def _unit(vectors: Tensor) -> Tensor:
    """Divide by the Euclidean norm in at least float32: the norm's lower bound is 0 in float16."""
    wide = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    return F.normalize(wide, dim=-1).to(vectors.dtype)
