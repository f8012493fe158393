"""The lab sheets: their checkers, and grading that runs locally."""
