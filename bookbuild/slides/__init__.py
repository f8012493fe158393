"""Builds the lecture slides from Markdown and from the executed chapters."""
