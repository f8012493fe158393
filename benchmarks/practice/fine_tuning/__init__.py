"""Measurements of book/practice/fine-tuning."""
