"""What `book/practice/recipes.md` imports."""
