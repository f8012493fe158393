"""Executes chapters and compares, stores and updates their outputs."""
