"""What `book/transformer/training.md` imports."""
