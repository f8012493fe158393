"""What `book/practice/quantization.md` imports."""
