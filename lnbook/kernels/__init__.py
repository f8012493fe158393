"""Kernels: functions that compute a whole norm in one pass over the data.

`lnbook.kernels.cpu` has them in Numba, for CPUs, and `lnbook.kernels.gpu` in Triton, for NVIDIA
GPUs. `lnbook.kernels.operators` makes them PyTorch operators.
"""
