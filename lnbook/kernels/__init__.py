"""Kernels: functions that compute a whole norm in one pass over the data.

`lnbook.kernels.gpu` has them in Triton, for NVIDIA GPUs.
"""
