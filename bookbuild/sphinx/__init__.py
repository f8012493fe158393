"""Sphinx extensions, each with one job."""
