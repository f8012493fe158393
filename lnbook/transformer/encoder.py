"""A stack of transformer blocks, with the final norm that some of them require."""

from typing import Any, Unpack

from torch import Tensor, nn

from lnbook._check import checked_bool, checked_count
from lnbook.transformer.blocks import BlockOptions, DeepNormBlock, TransformerBlock
from lnbook.transformer.normalization import make_norm

__all__ = ["TransformerEncoder"]


class TransformerEncoder(nn.Module):
    r"""Apply `num_layers` blocks in turn, and a final norm if the blocks need one.

    .. math::
        x_{l+1} = \operatorname{Block}_l(x_l), \qquad
        y = \operatorname{LN}(x_L) \text{ or } x_L

    Source: Xiong et al. 2020, table 1: a Pre-LN stack ends with a norm, since nothing else
    normalizes the residual stream. `torch.nn.TransformerEncoder` has a final norm only if you pass
    one. Each block is created with its own random weights (PyTorch copies one block). State dicts
    are interchangeable with those of `torch.nn.TransformerEncoder`.

    Args:
        block: the class of the blocks: `PostLNBlock`, `PreLNBlock`, `PeriLNBlock`,
            `DeepNormBlock` (which also receives `num_layers`) or another `TransformerBlock`.
        num_layers: the number of blocks.
        d_model: size of the last dimension of the input.
        nhead: the number of attention heads.
        final_norm: whether to normalize the output of the last block. If None, this depends on the
            blocks: yes for Pre-LN and Peri-LN, no for Post-LN and DeepNorm.
        options: the block's other keyword arguments. The final norm has the same type as the
            blocks' norms.

    Shape:
        Input and output: `(N, L, d_model)` or `(L, d_model)`.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        ValueError: at construction, for a value that the block rejects.

    Example:
        >>> import torch
        >>> from lnbook.transformer import PostLNBlock, PreLNBlock
        >>> encoder = TransformerEncoder(PreLNBlock, 2, 4, 2, dim_feedforward=8, dropout=0.0)
        >>> encoder.norm
        LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
        >>> encoder(torch.randn(5, 3, 4)).shape
        torch.Size([5, 3, 4])
        >>> TransformerEncoder(PostLNBlock, 2, 4, 2).norm is None
        True
    """

    norm: nn.Module | None

    def __init__(
        self,
        block: type[TransformerBlock],
        num_layers: int,
        d_model: int,
        nhead: int,
        *,
        final_norm: bool | None = None,
        **options: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        if not (isinstance(block, type) and issubclass(block, TransformerBlock)):
            raise TypeError(
                "TransformerEncoder: expected block to be a class of transformer blocks, such as "
                f"PreLNBlock, but got {block!r}"
            )
        num_layers = checked_count(num_layers, "num_layers", "TransformerEncoder", least=1)
        if final_norm is None:
            final_norm = block.needs_final_norm
        checked_bool(final_norm, "final_norm", "TransformerEncoder")
        depth: dict[str, Any] = {}
        if issubclass(block, DeepNormBlock):
            depth["num_layers"] = num_layers
        self.layers = nn.ModuleList(
            block(d_model, nhead, **options, **depth) for _ in range(num_layers)
        )
        self.norm = _final_norm(d_model, options) if final_norm else None

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        need_weights: bool = False,
    ) -> Tensor | tuple[Tensor, tuple[Tensor, ...]]:
        """Return the output and, with `need_weights`, the attention weights of every block.

        The arguments and errors are as in `TransformerBlock.forward`; `mask` is its `src_mask`.
        """
        x, weights = src, []
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, is_causal, need_weights)
            if need_weights:
                x, block_weights = x
                weights.append(block_weights)
        if self.norm is not None:
            x = self.norm(x)
        return (x, tuple(weights)) if need_weights else x


def _final_norm(d_model: int, options: BlockOptions) -> nn.Module:
    return make_norm(
        options.get("norm", "layer_norm"),
        d_model,
        eps=options.get("layer_norm_eps", 1e-5),
        bias=options.get("bias", True),
        device=options.get("device"),
        dtype=options.get("dtype"),
    )
