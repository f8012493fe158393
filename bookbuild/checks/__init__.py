"""Checks pages, links, notebooks, cells and the PDF for anything readers shouldn't see."""
