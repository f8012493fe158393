"""Searches for counterexamples with Hypothesis."""

from hypothesis import settings


def search(examples: int) -> settings:
    """Try this many examples, the same ones in every run, however long each takes."""
    return settings(max_examples=examples, derandomize=True, deadline=None, database=None)
