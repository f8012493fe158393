"""What `book/formula/epsilon-and-precision.md` imports."""
