"""Names of the site's downloads. Imports nothing."""

NOTEBOOKS = "_sources"  # the folder that the theme's download menu expects
ALL_NOTEBOOKS = f"{NOTEBOOKS}/notebooks.zip"
PDF_NAME = "layer-normalization.pdf"
PDF_VARIABLE = "BOOK_PDF"  # if set, the build prints the book and the site offers the PDF
