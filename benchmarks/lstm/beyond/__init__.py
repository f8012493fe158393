"""Measurements for the chapter book/lstm/beyond."""
