"""The chapters of `book/formula`."""
