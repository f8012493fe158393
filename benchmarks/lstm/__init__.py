"""Measurements for the chapters in book/lstm."""
