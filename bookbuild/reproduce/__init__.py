"""Compares outputs under rounding noise and on other code paths: `make reproduce`."""
