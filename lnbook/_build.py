"""Names that the package shares with the build of the book. Imports nothing."""

FIGURE_SNAPSHOT = "application/vnd.lnbook.figure+json"  # the output that is compared
SILENCE = "LNBOOK_SILENT"  # 1: no progress bar, which would be one more output to compare
