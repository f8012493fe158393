"""Finds the panels of a figure, so that stacked ones can be shown side by side where there's room.

In matplotlib's SVG, each panel is a group `axes_1`, `axes_2` and so on, whose first path is its
background. Coordinates are in points, from the top.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from itertools import pairwise

from bookbuild.site.figure_colors import SVG

TITLE = 20.0  # above a panel, for its title
TICKS = 7.0  # below a panel: its tick marks and the lower half of a number at its bottom
_AXES = re.compile(r"axes_\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_G, _PATH = f"{{{SVG}}}g", f"{{{SVG}}}path"

Span = tuple[float, float]  # from the top to the bottom
Box = tuple[float, float, float, float]  # left, right, top and bottom


def size(root: ET.Element) -> tuple[float, float]:
    """The width and height of a figure."""
    _, _, width, height = map(float, root.get("viewBox", "").split())
    return width, height


def rows(root: ET.Element) -> list[Span]:
    """Where the rows of panels are. Panels that are next to each other count as one row."""
    joined: list[Span] = []
    for top, bottom in sorted(box[2:] for box in map(_box, _panels(root))):
        if joined and top < joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], bottom)
        else:
            joined.append((top, bottom))
    return joined


def columns(svg: str) -> list[list[Span]]:
    """How to show stacked panels side by side.

    Args:
        svg: a figure as matplotlib wrote it.

    Returns:
        For each panel, the strips of the figure to show, one below the other: the panel with its
        title, and the numbers of the horizontal axis, which the panels share. The list is empty
        unless the figure has at least two panels, all stacked, with the same width and height, and
        only the last one has numbers below it.
    """
    root = ET.fromstring(svg)
    numbered = [_has_numbers_below(panel) for panel in _panels(root)]
    if len(numbered) < 2 or numbered != [False] * (len(numbered) - 1) + [True] or _has_legend(root):
        return []
    boxes = [_box(panel) for panel in _panels(root)]
    if not _is_stack(boxes):
        return []
    _, height = size(root)
    axis = boxes[-1][3] + TICKS, height
    return [[(max(0.0, top - TITLE), bottom + TICKS), axis] for _, _, top, bottom in boxes]


def _panels(root: ET.Element) -> list[ET.Element]:
    return [group for group in root.iter(_G) if _AXES.fullmatch(group.get("id", ""))]


def _box(group: ET.Element) -> Box:
    """The rectangle of a panel's background."""
    path = next(group.iter(_PATH))
    numbers = [float(number) for number in _NUMBER.findall(path.get("d", ""))]
    across, down = numbers[::2], numbers[1::2]
    return min(across), max(across), min(down), max(down)


def _is_stack(boxes: Sequence[Box]) -> bool:
    """Whether all panels have the same size, one below the other, from the top."""
    apart = [below[2] - above[3] for above, below in pairwise(boxes)]
    sizes = [(right - left, bottom - top) for left, right, top, bottom in boxes]
    same = all(
        abs(one - first) < 1.0
        for others in sizes
        for one, first in zip(others, sizes[0], strict=True)
    )
    return min(apart) > 0 and same


def _has_legend(root: ET.Element) -> bool:
    """Whether a legend belongs to the whole figure, and not to one of its panels."""
    figure = next(group for group in root.iter(_G) if group.get("id") == "figure_1")
    return any(part.get("id", "").startswith("legend_") for part in figure)


def _has_numbers_below(panel: ET.Element) -> bool | None:
    """Whether the horizontal axis of a panel has any text; None if the panel has no axis."""
    for group in panel.iter(_G):
        if group.get("id", "").startswith("matplotlib.axis_"):
            return any(part.get("id", "").startswith("text_") for part in group.iter(_G))
    return None
