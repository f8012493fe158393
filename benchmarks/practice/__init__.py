"""Measurements for the chapters in book/practice."""
