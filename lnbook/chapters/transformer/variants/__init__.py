"""What `book/transformer/variants.md` imports."""
