"""The book as one PDF."""
