"""Figures of the book, a module for each part. They take tables and compute nothing."""
