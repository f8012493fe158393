"""What `book/batch-norm/two-axes.md` imports."""
