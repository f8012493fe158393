"""Measurements for the chapter in book/transformer/training."""
