"""Differentiable normalization functions for torch tensors.

The functions are plain: read them side by side with their equations. The classes named Function are
fused: they compute the same thing, but faster, with the compiled kernels of `lnbook.kernels.cpu`.
"""

from lnbook._check_tensors import FLOATING_DTYPES, HALF_DTYPES
from lnbook.functional.batch_norm import batch_norm, instance_norm
from lnbook.functional.dynamic_tanh import dynamic_tanh
from lnbook.functional.group_norm import group_norm
from lnbook.functional.layer_norm import layer_norm, layer_norm_backward
from lnbook.functional.layer_norm_function import BlockedLayerNormFunction, LayerNormFunction
from lnbook.functional.rms_norm import rms_norm, rms_norm_backward
from lnbook.functional.rms_norm_function import RMSNormFunction

__all__ = [
    "FLOATING_DTYPES",
    "HALF_DTYPES",
    "BlockedLayerNormFunction",
    "LayerNormFunction",
    "RMSNormFunction",
    "batch_norm",
    "dynamic_tanh",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "layer_norm_backward",
    "rms_norm",
    "rms_norm_backward",
]
