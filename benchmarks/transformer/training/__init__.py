"""Measurements for the chapter book/transformer/training."""
