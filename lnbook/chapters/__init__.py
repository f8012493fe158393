"""What the chapters compute, draw and check, organized like the book's folders."""
