"""Finds where a figure's texts, without their arrows, end up when it's drawn."""

from collections.abc import Iterable

from matplotlib.figure import Figure
from matplotlib.text import Text


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that overlap."""
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in axes.texts if text.get_text()]
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts]
    return [
        (first, second)
        for number, (first, one) in enumerate(boxes)
        for second, other in boxes[number + 1 :]
        if one.overlaps(other)
    ]


def outside(figure: Figure, texts: Iterable[Text] | None = None) -> list[str]:
    """The texts (by default, all but labels) that stick out of the figure on the left or right."""
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in axes.texts] if texts is None else texts
    boxes = [(text.get_text(), Text.get_window_extent(text)) for text in texts]
    return [text for text, box in boxes if box.x0 < 0 or box.x1 > figure.bbox.width]
