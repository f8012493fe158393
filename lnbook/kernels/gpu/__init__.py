"""LayerNorm and RMSNorm as GPU kernels, written in Triton.

Each program normalizes one row, which is read once, stays in registers if it fits, and is written
once. The
gradients of the weight and the bias are sums over all rows, so they're added up in two stages: each
program adds up its own rows, then a second kernel adds up their sums.

Triton is an optional dependency for Linux: `pip install "lnbook[gpu]"`. Everything can be imported
without it; calling a function then raises ImportError. To run the kernels on CPU tensors, set the
environment variable `TRITON_INTERPRET=1` before anything imports Triton. Its interpreter is slow,
and meant for tests and for learning.
"""

from lnbook.kernels.gpu.layer_norm import layer_norm_backward, layer_norm_forward
from lnbook.kernels.gpu.rms_norm import rms_norm_backward, rms_norm_forward

__all__ = ["layer_norm_backward", "layer_norm_forward", "rms_norm_backward", "rms_norm_forward"]
