"""What `book/gradient/jacobian.md` imports."""
