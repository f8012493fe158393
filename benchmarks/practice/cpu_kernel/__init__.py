"""Measurements for the chapter on CPU kernels."""
