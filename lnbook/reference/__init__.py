"""The specification: every operation in NumPy and float64, written straight from its equations.

All other code of the course is tested against this floor, and this floor by finite differences.
"""

from lnbook.reference.layer_norm import (
    LayerNormResult,
    layer_norm,
    layer_norm_backward,
    layer_norm_forward,
    layer_norm_jacobian,
)

__all__ = [
    "LayerNormResult",
    "layer_norm",
    "layer_norm_backward",
    "layer_norm_forward",
    "layer_norm_jacobian",
]
