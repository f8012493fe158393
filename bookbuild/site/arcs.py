"""Arcs next to a list, each from a row to a later row that depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 10.0  # the width of the drawing, in rows; the style sheet stretches it


@dataclass(frozen=True)
class Arc:
    """Half an ellipse that opens to the right.

    Attributes:
        start: the row it comes from, counted from 0.
        end: the row it leads to.
        path: the arc for an SVG, in rows. The middle of row 0 is at height 0.5.
    """

    start: int
    end: int
    path: str


def arcs(links: Iterable[tuple[int, int]]) -> list[Arc]:
    """Draw an arc for each link between rows; the longer an arc, the farther it reaches.

    Args:
        links: pairs of rows; the first one is above the second.

    Raises:
        ValueError: if a row depends on a later one.

    Example:
        >>> arcs([(0, 2)])[0].path
        'M10 0.5A9.5 1 0 0 0 10 2.5'
    """
    links = sorted(set(links))
    longest = max((end - start for start, end in links), default=1)
    found = []
    for start, end in links:
        if start >= end:
            raise ValueError(f"row {end} can't come before row {start}, on which it depends")
        reach = 0.95 * WIDTH * ((end - start) / longest) ** 0.5
        ellipse = f"A{reach:.4g} {(end - start) / 2:.4g}"
        path = f"M{WIDTH:.4g} {start + 0.5:.4g}{ellipse} 0 0 0 {WIDTH:.4g} {end + 0.5:.4g}"
        found.append(Arc(start, end, path))
    return found
