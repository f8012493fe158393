"""The figures of the chapter on transformer blocks show what they are given."""

import numpy as np
import pytest

from lnbook.chapters.transformer.blocks import figures
from lnbook.notebook.figure_snapshot import describe

pytestmark = pytest.mark.usefixtures("book_style")


def boxes(name: str) -> list[tuple[float, float]]:
    """Where a label stands in the drawing of the two blocks, highest first."""
    record = describe(figures.post_and_pre())["axes"][0]
    found = [(x, y) for text, x, y in record["texts"] if text.replace("-\n", "-") == name]
    return sorted(found, key=lambda place: -place[1])


def test_norms_stand_on_the_stream_in_post_and_in_the_branch_in_pre() -> None:
    stream, branch = figures.STREAM, figures.BRANCH
    norms = boxes("LN")
    post = [place for place in norms if place[0] < 4.5]
    pre = [place for place in norms if place[0] > 5.5]
    assert [x for x, _ in post] == pytest.approx([stream] * 2)
    assert [x - 5 for x, _ in pre] == pytest.approx([branch, branch, stream])


@pytest.mark.parametrize("left", [0.0, 5.0])
def test_the_parts_of_a_block_follow_each_other(left: float) -> None:
    def column(name: str) -> list[float]:
        return [y for x, y in boxes(name) if left <= x < left + 4.9]

    (attention,), (forward,) = column("attention"), column("feed-forward")
    first, second = column("dropout")
    plus, last_plus = column("+")
    assert attention > first > plus > forward > second > last_plus
    norms = column("LN")
    if left:
        assert norms[0] > attention
        assert plus > norms[1] > forward
        assert last_plus > norms[2]
    else:
        assert plus > norms[0] > forward
        assert last_plus > norms[1]


def test_no_text_of_the_drawing_lies_on_another() -> None:
    figure = figures.post_and_pre()
    figure.canvas.draw()
    spots = [(t.get_text(), t.get_window_extent()) for t in figure.axes[0].texts]
    hits = [
        (one, other)
        for number, (one, box) in enumerate(spots)
        for other, second in spots[number + 1 :]
        if box.overlaps(second)
    ]
    assert hits == []


def test_attention_weights_write_each_number_but_zero() -> None:
    tables = {"a": [[1.0, 0.0], [0.25, 0.75]], "b": [[0.5, 0.5, 0.0]], "c": [[1.0]]}
    record = describe(figures.attention_weights(tables))["axes"]
    assert [panel["title"] for panel in record[:3]] == ["a", "b", "c"]
    written = [{(x, y): text for text, x, y in panel["texts"]} for panel in record[:3]]
    assert written[0] == {(0, 0): "1.00", (0, 1): ".25", (1, 1): ".75"}
    assert written[1] == {(0, 0): ".50", (1, 0): ".50"}
    assert record[0]["images"][0]["values"] == tables["a"]


@pytest.mark.parametrize("shape", [(2,), (0, 2), (7, 2), (2, 2, 2)])
def test_attention_weights_refuse(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="tables of at most 6 by 6"):
        figures.attention_weights({"a": np.zeros(shape)})
    with pytest.raises(ValueError, match="at least one panel"):
        figures.attention_weights({})


def test_by_block_draws_means_with_their_spread() -> None:
    runs = {"one": np.array([[1.0, 2.0, 3.0], [1.0, 4.0, 7.0]]), "two": np.ones((3, 3))}
    record = describe(figures.by_block(runs, "size"))["axes"][0]
    for line, (name, values) in zip(record["lines"], runs.items(), strict=True):
        assert line["label"] == name
        assert line["x"] == [0, 1, 2]
        assert line["y"] == pytest.approx(values.mean(axis=0))
    assert len({tuple(line["style"][1:]) for line in record["lines"]}) == 2
    band = np.array(record["points"][0]["paths"][0])
    assert band[:, 1].max() == pytest.approx(5.0 + np.std([3.0, 7.0], ddof=1), rel=1e-4)
    with pytest.raises(ValueError, match="at least one line"):
        figures.by_block({}, "size")
    with pytest.raises(ValueError, match="two seeds or more"):
        figures.by_block({"one": [[1.0, 2.0]]}, "size")
