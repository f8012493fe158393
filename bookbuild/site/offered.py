"""The names of what a site offers for download. Imports nothing."""

NOTEBOOKS = "_sources"  # the folder where the theme's download menu looks
ALL_NOTEBOOKS = f"{NOTEBOOKS}/notebooks.zip"
PDF_NAME = "layer-normalization.pdf"
PDF_VARIABLE = "BOOK_PDF"  # set: the build prints the book, and the site offers it
