"""What `book/practice/when-to-use.md` imports."""
