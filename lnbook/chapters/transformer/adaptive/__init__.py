"""What `book/transformer/adaptive.md` imports."""
