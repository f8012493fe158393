"""What `book/lstm/training.md` imports."""
