"""What `book/transformer/newer.md` imports."""
