"""A small causal language model: embeddings, a stack of blocks, and a linear head."""

from typing import Any, Unpack

import torch
from torch import Tensor, nn

from lnbook._check import checked_count
from lnbook._check_tensors import check_tensor
from lnbook.transformer.blocks import BlockOptions, PreLNBlock, TransformerBlock
from lnbook.transformer.encoder import TransformerEncoder

__all__ = ["CausalLanguageModel"]


class CausalLanguageModel(nn.Module):
    r"""Score every possible next token at each position, given the tokens so far.

    .. math::
        x_t = E_{w_t} + P_t, \qquad h = \operatorname{Encoder}(x), \qquad
        \log p(w_{t+1} \mid w_1, \dots, w_t) = \operatorname{log\,softmax}(W h_t + b)

    Source: Vaswani et al. 2017, the masked decoder without cross-attention, with learned positions.
    Each position sees only itself and earlier ones.

    Args:
        vocab_size: the number of different tokens.
        max_length: the maximum sequence length, for the positions.
        d_model: the width of the residual stream.
        nhead: the number of attention heads.
        num_layers: the number of blocks.
        block: the class of the blocks.
        final_norm: see `TransformerEncoder`.
        options: the block's other keyword arguments.

    Shape:
        Input: integers (int64 or int32) of shape `(N, L)` or `(L,)` with `L` at most
        `max_length`. Output: scores of shape `(N, L, vocab_size)` or `(L, vocab_size)`.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        ValueError: at construction, for a size below 1 or a value that the block rejects.

    Example:
        >>> model = CausalLanguageModel(10, 8, 4, 2, 1, dim_feedforward=8, dropout=0.0)
        >>> tokens = torch.tensor([[1, 2, 3, 4]])
        >>> scores = model(tokens)
        >>> scores.shape
        torch.Size([1, 4, 10])
        >>> torch.allclose(model(tokens[:, :2]), scores[:, :2], atol=1e-5)  # no looking ahead
        True
    """

    def __init__(
        self,
        vocab_size: int,
        max_length: int,
        d_model: int,
        nhead: int,
        num_layers: int,
        block: type[TransformerBlock] = PreLNBlock,
        *,
        final_norm: bool | None = None,
        **options: Unpack[BlockOptions],
    ) -> None:
        super().__init__()
        owner = "CausalLanguageModel"
        self.vocab_size = checked_count(vocab_size, "vocab_size", owner, least=1)
        self.max_length = checked_count(max_length, "max_length", owner, least=1)
        d_model = checked_count(d_model, "d_model", owner, least=1)
        where: dict[str, Any] = {"device": options.get("device"), "dtype": options.get("dtype")}
        self.token_embedding = nn.Embedding(self.vocab_size, d_model, **where)
        self.position_embedding = nn.Embedding(self.max_length, d_model, **where)
        self.encoder = TransformerEncoder(
            block, num_layers, d_model, nhead, final_norm=final_norm, **options
        )
        self.head = nn.Linear(d_model, self.vocab_size, bias=options.get("bias", True), **where)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the scores (logits) for the token after each of `tokens`.

        Raises:
            TypeError: `tokens` is not a tensor.
            RuntimeError: its dtype, shape or device is wrong.
            IndexError: a token is negative or not below `vocab_size`.
        """
        self._check_tokens(tokens)
        positions = self.position_embedding.weight[: tokens.shape[-1]]
        hidden = self.encoder(self.token_embedding(tokens) + positions, is_causal=True)
        scores: Tensor = self.head(hidden)
        return scores

    def _check_tokens(self, tokens: Any) -> None:
        owner = "CausalLanguageModel"
        check_tensor(tokens, "tokens", owner)
        if tokens.dtype not in (torch.int64, torch.int32):
            raise RuntimeError(
                f"{owner}: expected tokens to be int64 or int32, but got {tokens.dtype}"
            )
        if tokens.device != self.head.weight.device:
            raise RuntimeError(
                f"{owner}: expected tokens to be on the device of the parameters, "
                f"{self.head.weight.device}, but got tokens on {tokens.device}"
            )
        if tokens.dim() not in (1, 2) or tokens.shape[-1] > self.max_length:
            raise RuntimeError(
                f"{owner}: expected tokens of shape (N, L) or (L,) with L at most "
                f"{self.max_length}, but got {tuple(tokens.shape)}"
            )
        if tokens.is_meta or not tokens.numel() or torch.compiler.is_compiling():
            return
        least, most = (int(value) for value in tokens.aminmax())
        if least < 0 or most >= self.vocab_size:
            raise IndexError(
                f"{owner}: expected tokens from 0 to {self.vocab_size - 1}, "
                f"but got tokens from {least} to {most}"
            )
