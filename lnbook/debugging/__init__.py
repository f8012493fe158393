"""Find out where a model goes wrong."""

from lnbook.debugging.nonfinite import NonFinite, first_nonfinite

__all__ = ["NonFinite", "first_nonfinite"]
