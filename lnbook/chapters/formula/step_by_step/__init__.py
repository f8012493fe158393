"""What `book/formula/step-by-step.md` imports."""
