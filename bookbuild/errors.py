"""The one exception that the commands show to a person."""


class BookError(Exception):
    """One or more problems in the book, each a line that names its file (and cell)."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))
