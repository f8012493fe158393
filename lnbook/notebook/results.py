"""Results as a table or a list of check marks instead of columns of `True` and ASCII art."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

__all__ = ["Checks", "Table", "checks", "table"]

YES, NO = "✓", "✗"


@dataclass(frozen=True)
class Table:
    """Rows of text under a heading; notebooks show them as an HTML table.

    Attributes:
        columns: the heading of each column.
        rows: the cells of each row, as text.
        numeric: for each column, whether it is right-aligned.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]

    def __repr__(self) -> str:
        """Aligned text, for terminals and for comparing outputs."""
        lines = [self.columns, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(line, widths, self.numeric, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        head = self._html_row(self.columns, "th", 'scope="col"')
        body = "".join(self._html_row(row, "td") for row in self.rows)
        return f'<table class="table ln-results"><thead>{head}</thead><tbody>{body}</tbody></table>'

    def _html_row(self, cells: Sequence[str], tag: str, attributes: str = "") -> str:
        parts = []
        for place, (cell, right) in enumerate(zip(cells, self.numeric, strict=True)):
            name, extra = ("th", 'scope="row"') if tag == "td" and place == 0 else (tag, attributes)
            style = 'class="text-right"' if right else ""
            opening = " ".join(part for part in (name, extra, style) if part)
            parts.append(f"<{opening}>{escape(cell)}</{name}>")
        return f"<tr>{''.join(parts)}</tr>"


@dataclass(frozen=True)
class Checks:
    """Statements that were checked; notebooks show them as a list with check marks.

    Attributes:
        results: each statement, and whether it holds.
    """

    results: tuple[tuple[str, bool], ...]

    def __repr__(self) -> str:
        """A line per statement, for terminals and for comparing outputs."""
        return "\n".join(f"{YES if holds else NO} {text}" for text, holds in self.results)

    def _repr_html_(self) -> str:
        items = "".join(
            f'<li class="{"ln-yes" if holds else "ln-no"}">'
            f'<span role="img" aria-label="{"true" if holds else "false"}">'
            f"{YES if holds else NO}</span> {escape(text)}</li>"
            for text, holds in self.results
        )
        return f'<ul class="ln-checks">{items}</ul>'


def checks(results: Mapping[str, Any]) -> Checks:
    """List statements with a check mark where they hold and a cross where they don't.

    Args:
        results: for each statement, whether it holds: True or False, from Python, NumPy or torch.

    Raises:
        TypeError: a result is not a single boolean.
        ValueError: there are no results.

    Example:
        >>> checks({"2 + 2 is 4": 2 + 2 == 4, "2 + 2 is 5": 2 + 2 == 5})
        ✓ 2 + 2 is 4
        ✗ 2 + 2 is 5
    """
    if not results:
        raise ValueError("checks: expected at least one statement, but got none")
    return Checks(tuple((text, _boolean(text, value)) for text, value in results.items()))


def table(
    rows: Mapping[str, Any], columns: Sequence[str], digits: int | Sequence[int] = 2
) -> Table:
    """Lay out results as a table.

    Args:
        rows: for each row, its name and one value or a sequence of values. Text and integers are
            shown as they are, booleans as check marks, other numbers with `digits`.
        columns: the headings, starting with the one for the names.
        digits: the number of decimals, or one number for each column of values.

    Raises:
        ValueError: there are no rows, or a row or `digits` doesn't match the columns.

    Example:
        >>> table({"LayerNorm": (0.75, 20), "none": (0.5, 3)}, columns=("norm", "accuracy", "runs"))
        norm       accuracy  runs
        LayerNorm      0.75    20
        none           0.50     3
    """
    if not rows:
        raise ValueError("table: expected at least one row, but got none")
    width = len(columns) - 1
    decimals = [digits] * width if isinstance(digits, int) else list(digits)
    if len(decimals) != width:
        raise ValueError(
            f"table: expected digits to be one number or {width}, one for each column of values, "
            f"but got {len(decimals)}"
        )
    values = [_values(name, row, width) for name, row in rows.items()]
    cells = [
        (name, *(_cell(value, places) for value, places in zip(row, decimals, strict=True)))
        for name, row in zip(rows, values, strict=True)
    ]
    numeric = [all(_is_number(value) for value in column) for column in zip(*values, strict=True)]
    return Table(tuple(columns), tuple(cells), (False, *numeric))


def _values(name: str, row: Any, width: int) -> tuple[Any, ...]:
    values = tuple(row) if isinstance(row, (tuple, list)) else (row,)
    if len(values) != width:
        raise ValueError(
            f"table: expected {width} value{'s' * (width != 1)} in the row {name!r}, one for each "
            f"column after the first, but got {len(values)}"
        )
    return values


def _cell(value: Any, digits: int) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return YES if value else NO
    number = value.item() if hasattr(value, "item") else value
    if isinstance(number, bool):
        return YES if number else NO
    if isinstance(number, int):
        return str(number)
    text = f"{number:.{digits}f}"
    return text.lstrip("-") if not text.strip("-0.") else text  # no minus zero


def _is_number(value: Any) -> bool:
    """Whether a value belongs in a right-aligned column."""
    if isinstance(value, str):
        return bool(value) and value[0] in "-+0123456789"
    return not isinstance(value, (bool, np.bool_))


def _boolean(text: str, value: Any) -> bool:
    single = value.item() if hasattr(value, "item") and getattr(value, "ndim", 0) == 0 else value
    if not isinstance(single, bool):
        raise TypeError(f"checks: expected True or False for {text!r}, but got {value!r}")
    return single
