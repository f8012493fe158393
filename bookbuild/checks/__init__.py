"""Looks at pages, links, notebooks, cells and the PDF for what no reader should see."""
