"""What `book/gradient/derivation.md` imports."""
