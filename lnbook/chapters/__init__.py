"""What the chapters compute, draw and check, in the order of the book's folders."""
