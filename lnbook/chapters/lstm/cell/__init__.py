"""What `book/lstm/cell.md` imports."""
