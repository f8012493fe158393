"""What takes too long for a chapter, or differs between machines; see `benchmarks.__main__`."""
