"""Measurements for the chapter book/transformer/variants."""
