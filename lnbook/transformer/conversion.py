"""Convert PyTorch's encoder layer, with its weights and settings."""

from typing import Any

from torch import nn

from lnbook.transformer.blocks import PostLNBlock, PreLNBlock, TransformerBlock

__all__ = ["block_from_torch"]


def block_from_torch(layer: nn.TransformerEncoderLayer) -> TransformerBlock:
    """Return a block that computes what `layer` computes, with a copy of its weights.

    A `PreLNBlock` for a layer with `norm_first`, otherwise a `PostLNBlock`; activation, dropout,
    eps, dtype, device and training mode are also copied. `load_state_dict` would copy only the
    weights.

    Args:
        layer: a `torch.nn.TransformerEncoderLayer` with `batch_first=True`.

    Returns:
        A block in the layer's mode that shares no memory with it.

    Raises:
        TypeError: `layer` is something else, or its norms are not `torch.nn.LayerNorm`.
        ValueError: its inputs are not batch first, so its outputs would differ from the block's.

    Example:
        >>> import torch
        >>> layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
        >>> block, x = block_from_torch(layer), torch.randn(2, 3, 4)
        >>> type(block).__name__, torch.allclose(block(x), layer(x), atol=1e-5)
        ('PostLNBlock', True)
    """
    _check_layer(layer)
    kind = PreLNBlock if layer.norm_first else PostLNBlock
    block = kind(layer.linear1.in_features, layer.self_attn.num_heads, **_options(layer))
    _copy(layer, block)
    return block


def _check_layer(layer: Any) -> None:
    wanted = "a torch.nn.TransformerEncoderLayer"
    if not isinstance(layer, nn.TransformerEncoderLayer):
        raise TypeError(f"block_from_torch: expected {wanted}, but got {type(layer).__name__}")
    if not layer.self_attn.batch_first:
        raise ValueError(
            f"block_from_torch: expected {wanted} with batch_first=True, but got batch_first=False"
        )
    for norm in (layer.norm1, layer.norm2):
        if not isinstance(norm, nn.LayerNorm):
            raise TypeError(
                f"block_from_torch: expected {wanted} with norms of type torch.nn.LayerNorm, "
                f"but got {norm}"
            )


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
    """Copy the weights and the settings that can differ between parts of the layer."""
    block.load_state_dict(layer.state_dict())
    block.norm1.eps, block.norm2.eps = layer.norm1.eps, layer.norm2.eps
    block.self_attn.dropout = layer.self_attn.dropout
    for name in ("dropout", "dropout1", "dropout2"):
        getattr(block, name).p = getattr(layer, name).p
    block.train(layer.training)
