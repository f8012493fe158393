"""The specification: every operation in NumPy and float64, written straight from its equations.

All other norms and LSTM cells in the course are tested against these functions, whose gradients are
tested by finite differences.
"""

from lnbook.reference.batch_norm import (
    BatchNormResult,
    batch_norm,
    batch_norm_backward,
    batch_norm_forward,
    group_norm,
    instance_norm,
)
from lnbook.reference.layer_norm import (
    LayerNormResult,
    layer_norm,
    layer_norm_backward,
    layer_norm_forward,
    layer_norm_jacobian,
)
from lnbook.reference.rms_norm import rms_norm, rms_norm_backward

__all__ = [
    "BatchNormResult",
    "LayerNormResult",
    "batch_norm",
    "batch_norm_backward",
    "batch_norm_forward",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_forward",
    "layer_norm_jacobian",
    "rms_norm",
    "rms_norm_backward",
]
