"""What `book/batch-norm/train-and-eval.md` imports."""
