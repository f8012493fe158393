"""Measurements of speed and memory. Run one with `python -m benchmarks.norms`, or another name."""
