"""The chapters of `book/lstm`."""
