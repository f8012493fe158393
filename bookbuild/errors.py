"""The exception that commands report without a traceback."""

from collections.abc import Collection, Iterable


class BookError(Exception):
    """One or more problems in the book, one per line, each with its file (and cell)."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


def require_known(kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise a `BookError` unless all names are known.

    Args:
        kind: what kind of thing the names refer to, in one word.
        names: the names to look up.
        known: all the names that exist.
    """
    if unknown := [name for name in names if name not in known]:
        raise BookError(f"no {kind} named {', '.join(unknown)}; choose from {', '.join(known)}")
