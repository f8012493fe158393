"""What `book/practice/fine-tuning.md` imports."""
