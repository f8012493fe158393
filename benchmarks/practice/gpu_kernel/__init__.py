"""Measurements for `book/practice/gpu-kernel.md`; see `benchmarks.__main__`."""
