"""The name of the output type in which figures are compared. Imports nothing."""

__all__ = ["FIGURE_RECORD"]

FIGURE_RECORD = "application/vnd.lnbook.figure+json"
