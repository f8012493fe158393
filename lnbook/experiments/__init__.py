"""Experiments of the book, a module for each part. Each returns plain numbers."""
