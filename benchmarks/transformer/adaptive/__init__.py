"""Measurements for book/transformer/adaptive."""
