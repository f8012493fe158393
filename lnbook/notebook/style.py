"""The style of every figure in the book: colors, sizes and fonts, all in one place.

The colors are in `palette.toml`, named by what they represent. The fonts are the ones the site
uses for text and formulas; `bookbuild.site.figure_fonts` made them. Figures have no background: the
site shows them on the page's background, with shades for light and dark mode.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = [
    "COLORS",
    "INK",
    "LABELS",
    "MUTED",
    "PALETTE",
    "WIDTH",
    "concept",
    "line_style",
    "line_styles",
    "use_style",
]

PALETTE: dict[str, dict[str, str]] = tomllib.loads(
    Path(__file__).with_name("palette.toml").read_text(encoding="utf-8")
)
# The colors that figures are drawn with, named by what they represent.
COLORS = MappingProxyType(
    {name: shades["drawn"] for name, shades in PALETTE.items() if "drawn" in shades}
)
INK, MUTED = COLORS["ink"], COLORS["muted"]  # almost every figure uses them

# Dashes and markers, and what they represent, so that lines can be told apart without color.
_LINES: tuple[tuple[Any, str, tuple[str, ...]], ...] = (
    ("-", "o", ("first", "layer_norm", "post_ln")),
    ("--", "s", ("second", "batch_norm", "pre_ln")),
    ("-.", "D", ("third", "rms_norm", "layer_norm_2d", "per_gate")),
    (":", "^", ("fourth", "group_norm", "deep_norm", "carried")),
    ((0, (3, 1)), "P", ("fifth", "instance_norm", "peri_ln")),
    ((0, (1, 1)), "X", ("sixth", "dyt")),
    ((0, (5, 1, 1, 1, 1, 1)), "v", ("seventh", "no_norm")),
)
_NUMBERS = {name: number for number, (_, _, names) in enumerate(_LINES) for name in names}

LABELS = MappingProxyType(
    {
        "LN": "layer_norm",
        "LayerNorm": "layer_norm",
        "layer normalization": "layer_norm",
        "ba": "layer_norm",  # the LSTM of Ba, Kiros and Hinton
        "LN2d": "layer_norm_2d",
        "LayerNorm2d": "layer_norm_2d",
        "BN": "batch_norm",
        "BatchNorm": "batch_norm",
        "batch norm": "batch_norm",
        "batch normalization": "batch_norm",
        "RMS": "rms_norm",
        "RMS2d": "rms_norm",
        "RMSNorm": "rms_norm",
        "GN": "group_norm",
        "GroupNorm": "group_norm",
        "IN": "instance_norm",
        "InstanceNorm": "instance_norm",
        "DyT": "dyt",
        "none": "no_norm",
        "no norm": "no_norm",
        "Post": "post_ln",
        "Post-LN": "post_ln",
        "Pre": "pre_ln",
        "Pre-LN": "pre_ln",
        "Peri-LN": "peri_ln",
        "DeepNorm": "deep_norm",
        "per-gate": "per_gate",
        "carried": "carried",
    }
)

FONTS = (
    "LNSans-Regular.ttf",
    "LNSans-Bold.ttf",
    "LNSans-Italic.ttf",
    "LNMath-Regular.ttf",
    "LNMath-Italic.ttf",
)
WIDTH = 4.6  # inches: on a phone, letters in figures are still as large as in the text

_RC_PARAMS = MappingProxyType(
    {
        "axes.axisbelow": True,
        "axes.edgecolor": MUTED,
        "axes.labelcolor": INK,
        "axes.labelsize": 11.5,
        "axes.linewidth": 0.8,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlecolor": INK,
        "axes.titlelocation": "left",
        "axes.titlesize": 12,
        "axes.titleweight": "bold",
        "axes.unicode_minus": True,
        "figure.constrained_layout.use": True,
        "figure.dpi": 96,
        "figure.facecolor": "none",
        "figure.figsize": (WIDTH, 3.2),
        "font.family": ["LN Sans", "DejaVu Sans"],  # the second for symbols such as a square
        "font.size": 11.5,
        "grid.color": COLORS["rule"],
        "grid.linewidth": 0.7,
        "legend.frameon": False,
        "legend.fontsize": 11,
        "lines.linewidth": 2.0,
        "mathtext.fontset": "custom",
        "mathtext.fallback": "stix",  # comes with matplotlib; for large roots and parentheses
        **dict.fromkeys(("mathtext.rm", "mathtext.tt"), "LN Math"),
        **dict.fromkeys(("mathtext.it", "mathtext.cal"), "LN Math:italic"),
        **dict.fromkeys(("mathtext.bf", "mathtext.bfit"), "LN Sans:bold"),
        "mathtext.sf": "LN Sans",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
        "svg.fonttype": "path",
        "svg.hashsalt": "lnbook",
        "text.color": INK,
        "xtick.color": INK,
        "xtick.labelsize": 11,
        "ytick.color": INK,
        "ytick.labelsize": 11,
    }
)


def use_style() -> None:
    """Make matplotlib draw figures in the book's style from now on."""
    import matplotlib as mpl  # not at the top, because the site's build needs only the colors

    _add_fonts()
    mpl.rcParams.update(_RC_PARAMS)  # type: ignore[arg-type]


@cache
def _add_fonts() -> None:
    from matplotlib.font_manager import fontManager

    for name in FONTS:
        fontManager.addfont(Path(__file__).with_name("fonts") / name)


def concept(label: str) -> str | None:
    """Return the concept that a label names, based on its first words.

    Args:
        label: label of a line, row or panel.

    Returns:
        A name in `COLORS`, or None.

    Example:
        >>> concept("Pre-LN, warm-up"), concept("LN2d"), concept("momentum 0.1")
        ('pre_ln', 'layer_norm_2d', None)
    """
    fits = [name for name in LABELS if re.match(rf"{name}(?![\w-])", label, re.IGNORECASE)]
    return LABELS[max(fits, key=len)] if fits else None


def line_style(which: str | int, **other: Any) -> dict[str, Any]:
    """Return the style of a line as keyword arguments for `Axes.plot`.

    Args:
        which: what the line represents, as a name in `COLORS`; or, for a generic series, its
            number, from 0. The styles repeat after seven lines.
        other: options to override.

    Example:
        >>> line_style("batch_norm", marker="")
        {'color': '#D55E00', 'linestyle': '--', 'marker': ''}
    """
    number = which % len(_LINES) if isinstance(which, int) else _NUMBERS[which]
    dashes, marker, (series, *_) = _LINES[number]
    color = COLORS[series if isinstance(which, int) else which]
    return {"color": color, "linestyle": dashes, "marker": marker, **other}


def line_styles(labels: Iterable[str], **other: Any) -> dict[str, dict[str, Any]]:
    """Return the style of each line in a figure, keyed by label.

    A line whose label names a concept has that concept's style. If several labels name the same
    concept, their lines share its color, and the later ones get hollow markers and different
    dashes. A line whose label doesn't name a concept gets the next free style.

    Args:
        labels: the labels of all lines.
        other: options to override.

    Example:
        >>> styles = line_styles(["Pre-LN", "Pre-LN, warm-up", "mine"])
        >>> [(style["color"], style["marker"]) for style in styles.values()]
        [('#D55E01', 's'), ('#D55E01', 'o'), ('#00795D', 'D')]
    """
    named = {label: concept(label) for label in labels}
    first = {name: label for label, name in reversed(named.items()) if name}
    taken = {_NUMBERS[name] for name in first}
    free = chain((number for number in range(len(_LINES)) if number not in taken), count())
    styles = {}
    for label, name in named.items():
        if name and first[name] == label:
            styles[label] = line_style(name, **other)
        else:
            own = {"color": COLORS[name], "markerfacecolor": COLORS["paper"]} if name else {}
            styles[label] = line_style(next(free), **own | other)
    return styles
