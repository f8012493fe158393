"""A rim in the color of the page, so that letters stay readable where a line passes behind them."""

from __future__ import annotations

from matplotlib.patheffects import AbstractPathEffect, withStroke

HALO: list[AbstractPathEffect] = [withStroke(linewidth=3.0, foreground="white")]
