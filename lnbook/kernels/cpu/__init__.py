"""LayerNorm and RMSNorm as CPU kernels, written in Numba.

They read each row from memory once and divide the rows among as many threads as torch uses. Numba
is an optional dependency (`pip install numba`): everything can be imported without it, and
`lnbook.functional` then uses torch operations. Importing compiles nothing. The first call compiles
a kernel, which takes a few seconds, and keeps the machine code on disk for later processes.
"""

from lnbook.kernels.cpu.norms import (
    layer_norm_backward,
    layer_norm_forward,
    missing,
    rms_norm_backward,
    rms_norm_forward,
)

__all__ = [
    "layer_norm_backward",
    "layer_norm_forward",
    "missing",
    "rms_norm_backward",
    "rms_norm_forward",
]
