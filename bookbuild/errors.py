"""The exception that commands report without a traceback."""


class BookError(Exception):
    """One or more problems in the book, one per line, each with its file (and cell)."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))
