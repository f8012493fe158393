"""What `book/transformer/sequences.md` imports."""
