"""The chapters of `book/practice`."""
