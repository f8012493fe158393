"""Transformer blocks that differ in where they normalize, an encoder and a language model.

`blocks` contains the four placements, each written as its two equations; `attention`, `masks` and
`initialization` contain what they share; `encoder` and `language_model` combine them; `conversion`
converts PyTorch's layers.
"""

from lnbook.transformer.attention import SelfAttention, dot_product_attention
from lnbook.transformer.blocks import (
    BlockOptions,
    DeepNormBlock,
    PeriLNBlock,
    PostLNBlock,
    PreLNBlock,
    TransformerBlock,
)
from lnbook.transformer.conversion import block_from_torch
from lnbook.transformer.encoder import TransformerEncoder
from lnbook.transformer.initialization import deepnorm_init_, xavier_init_
from lnbook.transformer.language_model import CausalLanguageModel

__all__ = [
    "BlockOptions",
    "CausalLanguageModel",
    "DeepNormBlock",
    "PeriLNBlock",
    "PostLNBlock",
    "PreLNBlock",
    "SelfAttention",
    "TransformerBlock",
    "TransformerEncoder",
    "block_from_torch",
    "deepnorm_init_",
    "dot_product_attention",
    "xavier_init_",
]
