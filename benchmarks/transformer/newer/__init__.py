"""Measurements of book/transformer/newer."""
