"""Measurements for book/batch-norm/batch-size.md."""
