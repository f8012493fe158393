"""Measurements for book/batch-norm/family.md."""
