"""What `book/gradient/effective-learning-rate.md` imports."""
