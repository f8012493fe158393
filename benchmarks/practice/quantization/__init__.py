"""Measurements for book/practice/quantization."""
