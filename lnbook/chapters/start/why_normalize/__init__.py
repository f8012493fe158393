"""What `book/start/why-normalize.md` imports."""
