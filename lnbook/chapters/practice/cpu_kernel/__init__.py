"""What `book/practice/cpu-kernel.md` imports."""
