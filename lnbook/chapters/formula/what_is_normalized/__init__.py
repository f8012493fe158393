"""What `book/formula/what-is-normalized.md` imports."""
