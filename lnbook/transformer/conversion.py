"""Take over the weights and settings of PyTorch's encoder layers."""

from typing import Any

from torch import nn

from lnbook.layers import LayerNorm
from lnbook.transformer.blocks import PostLNBlock, PreLNBlock, TransformerBlock
from lnbook.transformer.encoder import TransformerEncoder

__all__ = ["block_from_torch", "encoder_from_torch"]


def block_from_torch(layer: nn.TransformerEncoderLayer) -> TransformerBlock:
    """Return a block that computes what `layer` computes, with a copy of its weights.

    `PreLNBlock` for a layer with `norm_first`, else `PostLNBlock`; activation, dropout, eps,
    dtype, device and training mode are the layer's too. `load_state_dict` alone copies the
    weights alone.

    Args:
        layer: a `torch.nn.TransformerEncoderLayer` with `batch_first=True`.

    Returns:
        A block in the layer's mode, that shares no memory with it.

    Raises:
        TypeError: `layer` is something else, or its norms are not `torch.nn.LayerNorm`.
        ValueError: its inputs are not batch first: its outputs would not be the block's.

    Example:
        >>> import torch
        >>> layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        >>> block, x = block_from_torch(layer), torch.randn(2, 3, 4)
        >>> type(block).__name__, torch.allclose(block(x), layer(x), atol=1e-5)
        ('PostLNBlock', True)
    """
    _check_layer(layer, "block_from_torch")
    kind = PreLNBlock if layer.norm_first else PostLNBlock
    block = kind(layer.linear1.in_features, layer.self_attn.num_heads, **_options(layer))
    _copy(layer, block)
    return block


def encoder_from_torch(encoder: nn.TransformerEncoder) -> TransformerEncoder:
    """Return a stack that computes what `encoder` computes, with a copy of its weights.

    It has a final norm exactly if `encoder` has one. In evaluation without gradients, PyTorch's
    fast path sets padded tokens of the output to 0; this stack treats them as in training.

    Args:
        encoder: a `torch.nn.TransformerEncoder` of layers with `batch_first=True`.

    Returns:
        A stack in the encoder's mode, that shares no memory with it.

    Raises:
        TypeError: `encoder` is something else, or a norm is not `torch.nn.LayerNorm`.
        ValueError: its inputs are not batch first, or it has no layers.

    Example:
        >>> import torch
        >>> layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        >>> encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(4))
        >>> stack, x = encoder_from_torch(encoder), torch.randn(2, 3, 4)
        >>> torch.allclose(stack(x), encoder(x), atol=1e-5)
        True
    """
    if not isinstance(encoder, nn.TransformerEncoder):
        raise TypeError(
            "encoder_from_torch: expected a torch.nn.TransformerEncoder, "
            f"but got {type(encoder).__name__}"
        )
    if not len(encoder.layers):
        raise ValueError("encoder_from_torch: expected at least one layer, but got none")
    for layer in encoder.layers:
        _check_layer(layer, "encoder_from_torch")
    first: Any = encoder.layers[0]
    has_norm = encoder.norm is not None
    if has_norm:
        _check_norm(encoder.norm, "encoder_from_torch")
    stack = TransformerEncoder(
        PreLNBlock if first.norm_first else PostLNBlock,
        len(encoder.layers),
        first.linear1.in_features,
        first.self_attn.num_heads,
        final_norm=has_norm,
        **_options(first),
    )
    stack.train(encoder.training)
    for layer, block in zip(encoder.layers, stack.layers, strict=True):
        _copy(layer, block)
    if has_norm:
        stack.norm = _copied_norm(encoder.norm)
    return stack


def _check_layer(layer: Any, owner: str) -> None:
    if not isinstance(layer, nn.TransformerEncoderLayer):
        raise TypeError(
            f"{owner}: expected a torch.nn.TransformerEncoderLayer, but got {type(layer).__name__}"
        )
    if not layer.self_attn.batch_first:
        raise ValueError(
            f"{owner}: expected a torch.nn.TransformerEncoderLayer with batch_first=True, "
            "but got batch_first=False"
        )
    _check_norm(layer.norm1, owner)
    _check_norm(layer.norm2, owner)


def _check_norm(norm: Any, owner: str) -> None:
    if not isinstance(norm, nn.LayerNorm):
        raise TypeError(f"{owner}: expected norms of type torch.nn.LayerNorm, but got {norm}")


def _options(layer: nn.TransformerEncoderLayer) -> dict[str, Any]:
    weight = layer.linear1.weight
    return {
        "dim_feedforward": layer.linear1.out_features,
        "dropout": layer.dropout.p,
        "activation": layer.activation,
        "layer_norm_eps": layer.norm1.eps,
        "bias": layer.linear1.bias is not None,
        "device": weight.device,
        "dtype": weight.dtype,
    }


def _copy(layer: Any, block: Any) -> None:
    """Copy the weights, and the settings that may differ between parts of the layer."""
    block.load_state_dict(layer.state_dict())
    block.norm1.eps, block.norm2.eps = layer.norm1.eps, layer.norm2.eps
    block.self_attn.dropout = layer.self_attn.dropout
    for name in ("dropout", "dropout1", "dropout2"):
        getattr(block, name).p = getattr(layer, name).p
    block.train(layer.training)


def _copied_norm(norm: Any) -> LayerNorm:
    where = (
        {} if norm.weight is None else {"device": norm.weight.device, "dtype": norm.weight.dtype}
    )
    copied = LayerNorm(
        norm.normalized_shape, norm.eps, norm.elementwise_affine, norm.bias is not None, **where
    )
    copied.load_state_dict(norm.state_dict())
    return copied.train(norm.training)
