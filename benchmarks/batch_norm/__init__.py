"""Measurements of the chapters in book/batch-norm."""
