"""The chapters of `book/batch-norm`."""
