"""Measurements of the chapters in book/start."""
