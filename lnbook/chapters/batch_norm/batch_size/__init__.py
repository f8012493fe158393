"""What `book/batch-norm/batch-size.md` imports."""
