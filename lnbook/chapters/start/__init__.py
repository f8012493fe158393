"""The chapters of `book/start`."""
