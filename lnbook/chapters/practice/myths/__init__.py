"""What `book/practice/myths.md` imports."""
