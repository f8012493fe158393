"""How every figure of the book looks: one place for colors, sizes and fonts.

The colors are those of Okabe and Ito, which stay apart for color-blind readers. Figures have no
background: the site shows them on the page's own, and turns lightness around in dark mode.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

__all__ = [
    "BLUE",
    "GRAY",
    "GREEN",
    "INK",
    "LINE_STYLES",
    "ORANGE",
    "PURPLE",
    "RC_PARAMS",
    "SKY",
    "VERMILION",
    "WIDTH",
    "line_style",
]

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#00795A"
PURPLE = "#A8558A"
ORANGE = "#B57500"
SKY = "#56B4E9"
INK = "#1F2430"
GRAY = "#6B7280"

LINE_STYLES = tuple(  # dashes and markers too: a line is known without its color
    MappingProxyType({"color": color, "linestyle": dashes, "marker": marker})
    for color, dashes, marker in (
        (BLUE, "-", "o"),
        (VERMILION, "--", "s"),
        (GREEN, "-.", "D"),
        (PURPLE, ":", "^"),
        (GRAY, (0, (5, 1, 1, 1, 1, 1)), "v"),
        (ORANGE, (0, (3, 1)), "P"),
        (SKY, (0, (1, 1)), "X"),
    )
)

WIDTH = 4.6  # inches: on a phone the letters are still as large as those of the text

RC_PARAMS = MappingProxyType(
    {
        "axes.axisbelow": True,
        "axes.edgecolor": GRAY,
        "axes.labelcolor": INK,
        "axes.labelsize": 10.5,
        "axes.linewidth": 0.8,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": INK,
        "axes.titlelocation": "left",
        "axes.titlesize": 11,
        "axes.titleweight": "bold",
        "axes.unicode_minus": True,
        "figure.constrained_layout.use": True,
        "figure.dpi": 96,
        "figure.facecolor": "none",
        "figure.figsize": (WIDTH, 3.2),
        "font.family": "DejaVu Sans",  # comes with matplotlib, so it is the same everywhere
        "font.size": 10.5,
        "grid.color": "#D5D9E0",
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "legend.fontsize": 10,
        "lines.linewidth": 2.0,
        "mathtext.fontset": "dejavusans",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "svg.fonttype": "path",
        "svg.hashsalt": "lnbook",
        "text.color": INK,
        "xtick.color": INK,
        "xtick.labelsize": 10,
        "ytick.color": INK,
        "ytick.labelsize": 10,
    }
)


def line_style(number: int, *, among: int = 5, **other: Any) -> dict[str, Any]:
    """Return how a line of a figure looks, by its number, in the words of `Axes.plot`.

    Args:
        number: of the line, from 0.
        among: after how many lines the looks start again, at most seven.
        other: what is to be otherwise.

    Example:
        >>> line_style(1, marker="")
        {'color': '#D55E00', 'linestyle': '--', 'marker': ''}
    """
    return {**LINE_STYLES[number % among], **other}
