"""The chapters of `book/gradient`."""
