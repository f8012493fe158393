"""What `book/gradient/autograd-function.md` imports."""
