"""Measurements for the chapter in book/lstm/beyond."""
