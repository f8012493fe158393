"""Where the texts of a figure stand once it is drawn."""

from matplotlib.figure import Figure


def overlapping(figure: Figure) -> list[tuple[str, str]]:
    """Pairs of texts that stand on top of each other."""
    figure.draw_without_rendering()
    texts = [text for axes in figure.axes for text in axes.texts if text.get_text()]
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts]
    return [
        (first, second)
        for number, (first, one) in enumerate(boxes)
        for second, other in boxes[number + 1 :]
        if one.overlaps(other)
    ]
