"""Measurements of book/practice/debugging."""
