"""What `book/formula/geometry.md` imports."""
