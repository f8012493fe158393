"""What `book/batch-norm/family.md` imports."""
