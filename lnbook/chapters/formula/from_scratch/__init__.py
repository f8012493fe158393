"""What `book/formula/from-scratch.md` imports."""
