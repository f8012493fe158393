"""Measurements of the chapters in book/lstm."""
