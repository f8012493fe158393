"""Normalization layers as torch modules, with PyTorch's argument names and state dicts.

`folding` moves parts of a trained norm into the adjacent linear layers.
"""

from lnbook.layers.ada_layer_norm import AdaLayerNorm
from lnbook.layers.batch_norm import BatchNorm1d, BatchNorm2d
from lnbook.layers.dyt import DyT
from lnbook.layers.folding import fold_affine_, fold_centering
from lnbook.layers.layer_norm import LayerNorm, LayerNorm2d
from lnbook.layers.rms_norm import RMSNorm

__all__ = [
    "AdaLayerNorm",
    "BatchNorm1d",
    "BatchNorm2d",
    "DyT",
    "LayerNorm",
    "LayerNorm2d",
    "RMSNorm",
    "fold_affine_",
    "fold_centering",
]
