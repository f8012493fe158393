"""What `book/lstm/beyond.md` imports."""
