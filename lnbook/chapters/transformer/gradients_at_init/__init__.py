"""What `book/transformer/gradients-at-init.md` imports."""
