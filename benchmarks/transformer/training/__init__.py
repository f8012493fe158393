"""Measurements of the chapters in book/transformer/training."""
