"""Measurements for book/transformer/newer."""
