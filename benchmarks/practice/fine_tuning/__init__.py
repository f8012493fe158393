"""Measurements for book/practice/fine-tuning."""
