"""Measurements for the chapter book/lstm/training."""
