"""What `book/practice/gpu-kernel.md` imports."""
