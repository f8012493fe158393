"""Measurements of book/transformer/adaptive."""
