"""What `book/practice/debugging.md` imports."""
