"""Measurements of the chapters in book/practice."""
