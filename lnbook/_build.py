"""Names that the package shares with the book's build. It imports nothing."""

FIGURE_SNAPSHOT = "application/vnd.lnbook.figure+json"  # MIME type of the output that gets compared
SILENCE = "LNBOOK_SILENT"  # if 1, hide progress bars: they would add outputs to compare
