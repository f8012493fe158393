"""The chapters of `book/transformer`."""
