"""Measurements for the chapters in book/batch-norm."""
