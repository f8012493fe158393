"""Names that the package shares with the build of the book. It imports nothing."""

FIGURE_SNAPSHOT = "application/vnd.lnbook.figure+json"  # the output that comparisons use
SILENCE = "LNBOOK_SILENT"  # 1: no progress bars, which would add outputs to compare
