"""Measurements for the chapter in book/start/why-normalize."""
