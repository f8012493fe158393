"""Measurements for book/practice/debugging."""
