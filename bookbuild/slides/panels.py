"""Shows only some panels of a figure, larger: a slide has less room for stacked panels than a page.

Panels that are next to each other count as one row; the rows are numbered from the top. Anything
below the last row, such as a shared axis and the legend, always stays.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from bookbuild.errors import BookError
from bookbuild.site.figure_colors import SVG, XLINK
from bookbuild.site.figure_files import Figure
from bookbuild.site.figure_panels import TITLE, rows, size

_WHOLE = "figure_1"  # the group with everything that matplotlib drew


def only(figure: Figure, wanted: Sequence[int]) -> Figure:
    """A figure with some of its rows of panels.

    Args:
        figure: a figure as matplotlib wrote it.
        wanted: the numbers of the rows, counted from 1.

    Raises:
        BookError: if the figure doesn't have such rows.
    """
    root = ET.fromstring(figure.svg)
    found = rows(root)
    if (
        not wanted
        or sorted(set(wanted)) != list(wanted)
        or not 1 <= wanted[0] <= wanted[-1] <= len(found)
    ):
        raise BookError(
            f"'{figure.name}' has {len(found)} rows of panels; expected some of them in order, "
            f"but got {' '.join(map(str, wanted))}"
        )
    width, height = size(root)
    starts = [0.0, *(max(top - TITLE, before) for (_, before), (top, _) in pairwise(found))]
    ends = [*starts[1:], found[-1][1]]
    strips = [(starts[row - 1], ends[row - 1]) for row in wanted]
    strips.append((found[-1][1], height))
    label = f"panel{'s' * (len(wanted) > 1)} {' and '.join(map(str, wanted))}"
    return replace(
        figure,
        name=f"{figure.name}.{'-'.join(map(str, wanted))}",
        alt=f"{figure.alt} (Only {label}, counted from the top.)",
        svg=_joined(root, width, strips),
    )


def _joined(root: ET.Element, width: float, strips: Sequence[tuple[float, float]]) -> str:
    """The same drawing, cut into strips of the full width, one below the other."""
    drawing = next(part for part in root if part.get("id") == _WHOLE)
    root.remove(drawing)
    hidden = ET.SubElement(root, f"{{{SVG}}}defs")
    hidden.append(drawing)
    y = 0.0
    for start, end in strips:
        part = ET.SubElement(root, f"{{{SVG}}}svg")
        box = {"x": 0.0, "y": y, "width": width, "height": end - start}
        for name, value in box.items():
            part.set(name, f"{value:.2f}")
        part.set("viewBox", f"0 {start:.2f} {width:.2f} {end - start:.2f}")
        ET.SubElement(part, f"{{{SVG}}}use").set(f"{{{XLINK}}}href", f"#{_WHOLE}")
        y += end - start
    root.set("height", f"{y:.2f}pt")
    root.set("viewBox", f"0 0 {width:.2f} {y:.2f}")
    return ET.tostring(root, encoding="unicode")
