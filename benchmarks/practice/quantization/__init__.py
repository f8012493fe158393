"""Measurements of book/practice/quantization."""
