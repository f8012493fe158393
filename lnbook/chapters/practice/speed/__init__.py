"""What `book/practice/speed.md` imports."""
