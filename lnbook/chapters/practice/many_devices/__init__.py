"""What `book/practice/many-devices.md` imports."""
