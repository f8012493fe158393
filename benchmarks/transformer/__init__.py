"""Measurements for the chapters in book/transformer."""
