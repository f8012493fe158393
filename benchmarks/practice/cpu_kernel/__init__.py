"""Measurements of the chapter on CPU kernels."""
