"""Measurements for the chapters in book/start."""
