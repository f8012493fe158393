"""Executes chapters, and compares, keeps and renews their outputs."""
