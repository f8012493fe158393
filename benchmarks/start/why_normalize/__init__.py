"""Measurements of the chapter in book/start/why-normalize."""
