"""What `book/transformer/blocks.md` imports."""
