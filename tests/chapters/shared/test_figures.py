"""The figures in all chapters: which inputs they reject, and what their snapshots can't show.

Other tests check that a figure shows the numbers it's given: the example in each function's
docstring, and the snapshots in the chapters' references, which nbval compares.
"""

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from lnbook.chapters.batch_norm.batch_size import figures as batch_size
from lnbook.chapters.batch_norm.family import figures as family
from lnbook.chapters.batch_norm.train_and_eval import figures as train_and_eval
from lnbook.chapters.batch_norm.two_axes import figures as two_axes
from lnbook.chapters.formula.epsilon_and_precision import figures as epsilon
from lnbook.chapters.formula.from_scratch import figures as from_scratch
from lnbook.chapters.formula.geometry import figures as geometry
from lnbook.chapters.formula.step_by_step import figures as step_by_step
from lnbook.chapters.gradient.autograd_function import figures as autograd_function
from lnbook.chapters.gradient.derivation import figures as derivation
from lnbook.chapters.gradient.effective_learning_rate import figures as effective
from lnbook.chapters.gradient.jacobian import figures as jacobian
from lnbook.chapters.lstm.cell import figures as cell
from lnbook.chapters.lstm.training import figures as lstm_training
from lnbook.chapters.practice.cpu_kernel import figures as cpu_kernel
from lnbook.chapters.practice.debugging import figures as debugging
from lnbook.chapters.practice.gpu_kernel import figures as gpu_kernel
from lnbook.chapters.practice.many_devices import figures as many_devices
from lnbook.chapters.practice.myths import figures as myths
from lnbook.chapters.practice.recipes import figures as recipes
from lnbook.chapters.practice.speed import figures as speed
from lnbook.chapters.practice.when_to_use import figures as when_to_use
from lnbook.chapters.shared import block_figures
from lnbook.chapters.shared import figures as shared
from lnbook.chapters.start.why_normalize import figures as why
from lnbook.chapters.transformer.adaptive import figures as adaptive
from lnbook.chapters.transformer.blocks import figures as blocks
from lnbook.chapters.transformer.gradients_at_init import figures as at_init
from lnbook.chapters.transformer.newer import figures as newer
from lnbook.chapters.transformer.sequences import figures as sequences
from lnbook.chapters.transformer.training import figures as training
from lnbook.chapters.transformer.variants import figures as variants
from lnbook.notebook.style import WIDTH
from tests.helpers.drawn_texts import outside, overlapping

pytestmark = pytest.mark.usefixtures("book_style")

CHAPTERS = Path(shared.__file__).parents[1]
RUNS = np.array([[1.0, 2.0, 4.0], [3.0, 2.0, 8.0]])
THREE = ["a", "b", "c"]
NAMES = ("N", "L", "D")
MASK = np.zeros((2, 3, 4), dtype=bool)
FOUR_AXES = np.zeros((3, 2, 3, 4), dtype=bool)
GAINS = [[1.0, 1.1, 1.2]]


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape)


# Each row: a function, its arguments, and part of the message (what was expected and given).
REFUSED: list[tuple[Callable[..., Figure], tuple[Any, ...], str]] = [
    (batch_size.by_size, ({},), "at least one panel, but got none"),
    (batch_size.by_size, ({"one": {"ln": {2: [0.9]}}},), "norm to be one of .*, but got 'ln'"),
    (batch_size.by_rate, ({},), "at least one panel, but got none"),
    (batch_size.learning_curves, ([1], {}, ""), "at least one panel, but got none"),
    (batch_size.grid, (zeros(2, 2), [2, 4], [2]), r"values of shape \(2, 1\), but got \(2, 2\)"),
    (family.members, ({}, NAMES, []), r"one array of three axes, but got \[\]"),
    (family.members, ({"a": MASK[0]}, NAMES, [""]), r"one array of three axes, but got \[\(3, 4\)"),
    (family.members, ({"a": MASK}, NAMES, ["", ""]), "3 names and 1 notes, but got 3 and 2"),
    (family.table, ([[True], [False]], ["r"], ["a", "b"]), r"\(1, 2\), but got \(2, 1\)"),
    *(
        (family.curves, (wrong, [1.0], "x"), "panels with the same 1 to 7 lines, but got")
        for wrong in (
            {},
            {"one": {}},
            {"one": {"a": [1]}, "two": {"b": [1]}},
            {"one": {letter: [1.0] for letter in "abcdefgh"}},
        )
    ),
    (train_and_eval.companions, ((1, 2, 8), RUNS, zeros(3, 3)), r"\(3, draws\), but got \(2, 3\)"),
    (train_and_eval.running, ({}, [1.0], 1.0), "at least one line, but got none"),
    (train_and_eval.errors, ({}, {}), "at least one line, but got none"),
    (train_and_eval.errors, ({"a": [1.0]}, {"b": [1.0]}), r"same labels, but got \['a'\] and"),
    (train_and_eval.accuracy_by_batch, ((2,), {}, {}), "at least one line, but got none"),
    (train_and_eval.accuracy_by_shift, ((0.0,), {}), "at least one line, but got none"),
    (train_and_eval.accuracy_over_steps, ([1], {}), "at least one line, but got none"),
    (two_axes.columns_and_rows, (zeros(3, 9), zeros(2, 9), RUNS), r"8 by 8, but got shape \(3, 9"),
    (two_axes.columns_and_rows, (zeros(3, 4), RUNS, zeros(2, 4)), r"\(2, 3\), but got \(2, 3\)"),
    (two_axes.signs, ({"a": zeros(3)},), r"at most 8 by 8, but got shape \(3,\)"),
    (two_axes.signs, ({},), r"matrices of the same shape, but got \[\]"),
    (two_axes.signs, ({"a": RUNS, "b": RUNS.T},), r"same shape, but got \[\(2, 3\), \(3, 2\)\]"),
    (two_axes.signs, ({"a": RUNS}, [(2, 0)]), r"places to frame, but got \[\(2, 0\)\]"),
    (epsilon.variance_errors, (RUNS[0], {"a": RUNS[0]}, [1.0]), r"shape \(3,\), but got \(1,\)"),
    (epsilon.variance_errors, (RUNS[0], {}, RUNS[0]), "one to 4 curves, .* but got"),
    *(
        (draw, (RUNS[0], curves), "one to 4 curves, .* but got")
        for draw in (epsilon.spread, epsilon.stretch)
        for curves in ({}, {"short": [1.0]}, {str(n): RUNS[0] for n in range(5)})
    ),
    *(
        (from_scratch.caught, (results, names, THREE), "results of shape .*, but got")
        for results, names in ((zeros(2, 3), ["one"]), (zeros(0, 3), []), (True, ["one"]))
    ),
    *(
        (
            geometry.space,
            (zeros(*shape),) * 3,
            r"three arrays of the same shape \(N, 3\), .* but got",
        )
        for shape in ((4, 3), (2, 4), (3,), (0, 3))
    ),
    (geometry.space, (RUNS, RUNS[:1], RUNS), "three arrays of the same shape"),
    *(
        (geometry.plane, (panels,), r"rows of shape \(N, 3\), N at least 3, but got")
        for panels in ({}, {"a": zeros(2, 3)}, {"a": zeros(5, 2)})
    ),
    (geometry.invariances, (RUNS, ["a"], THREE), r"table of shape \(1, 3\), but got \(2, 3\)"),
    (geometry.clouds, ({},), r"points of shape \(N, 2\), but got \[\]"),
    (geometry.clouds, ({"bad": zeros(4, 3)},), r"points of shape \(N, 2\), but got \[\(4, 3\)\]"),
    *(
        (step_by_step.rows_before_and_after, (zeros(*shape), RUNS), "two arrays .*, but got")
        for shape in ((2, 4), (6,), (5, 3))
    ),
    (step_by_step.scale_and_shift, ({},), "at least one row, but got none"),
    (debugging.stream, ([[1.0]], 65504.0), r"shape \(B,\), but got \(1, 1\)"),
    (debugging.rounding, ([1, 2], {"a": [1.0]}, {}), "for 'a', but got"),
    (debugging.rounding, ([1, 2], {}, {"n": [1.0]}), "for 'n', but got"),
    (many_devices.splits, ({"a": [[0]], "b": [[0, 0]]}, ["x"]), r"shape \(1, features\), but got"),
    (many_devices.splits, ({"a": [[0, 4]]}, ["x"]), "at most four devices"),
    (cpu_kernel.steps, ({},), "with the same versions, but got 0"),
    (cpu_kernel.partial_sums, (5, 1, 1), "2 to 4 blocks, but got 5"),
    (autograd_function.memory_bars, ({},), "at least one version, but got none"),
    *(
        (adaptive.images, (rows, []), r"same shape \(N, height, width\), but got")
        for rows in ({}, {"a": RUNS}, {"a": zeros(2, 8, 8), "b": zeros(3, 8, 8)})
    ),
    (adaptive.images, ({"a": zeros(2, 8, 8)}, ["a"]), "2 titles, but got 1"),
    (newer.curves, ({"a": {}}, "step", []), "a label for each, but got 1 panels and 0 labels"),
    (newer.differences, ({}, "loss"), "at least one row, but got none"),
    (effective.angles, ([1, 2], {"a": [0.1]}, {}), r"shape \(2,\) for 'a', but got \(1,\)"),
    *(
        (jacobian.matrix, (zeros(*shape),), r"shape \(H, H\), H at most 8, but got")
        for shape in ((2, 3), (4,), (9, 9), (0, 0))
    ),
    (derivation.nudge, ([1.0, 2.0], [0.5]), "two rows of the same length, but got"),
    (jacobian.spectrum, ({},), "at least one set of eigenvalues, but got none"),
    (jacobian.before_and_after, ({},), "at least one panel, but got none"),
    (jacobian.gradient_by_layer, ({},), "at least one panel, but got none"),
    (jacobian.weight_norms, ({},), "at least one line, but got none"),
    (cell.gates, ({},), "at least one panel, but got none"),
    (lstm_training.curves, ({},), "at least one panel, but got none"),
    (lstm_training.curves, ({"": {"Ba": ([1], [[1.0]])}},), "one of the lines .*, but got 'Ba'"),
    (lstm_training.by_rate, ({},), "at least one panel, but got none"),
    (myths.effects, ({}, ["a"]), r"one to 3 lines of 1 numbers, but got shapes \[\]"),
    (myths.effects, ({str(i): [1.0] for i in range(4)}, ["a"]), "one to 3 lines of 1 numbers"),
    (myths.effects, ({"x": [1.0, 2.0]}, ["a"]), r"one to 3 lines of 1 numbers, .* \[\(2,\)\]"),
    (myths.effects, ({"x": [0.0]}, ["a"]), "positive numbers, .*, but got 0"),
    (recipes.gains_over_training, (RUNS[0], {}), "1 to 3 training methods, but got 0"),
    (recipes.gains_over_training, (RUNS[0], dict.fromkeys("abcd", GAINS)), "but got 4"),
    (recipes.gains_over_training, (RUNS[0], {"a": GAINS[0]}), r"\(S, 3\), but got \(3,\)"),
    (recipes.gains_over_training, (RUNS[0], {"a": [[1.0]]}), r"\(S, 3\), but got \(1, 1\)"),
    (gpu_kernel.careless_scale, ([2, 3], [1.0]), r"as scales, but got \(2,\) and \(1,\)"),
    (gpu_kernel.bandwidth, ({},), "at least one panel, but got none"),
    (gpu_kernel.programs, (2, 5, 4), "a block of at least 5, but got 4"),
    (gpu_kernel.two_stages, (2, 4, 3, 2), "1 to 2 programs, but got 3"),
    (gpu_kernel.two_stages, (9, 4, 7, 2), "1 to 6 programs, but got 7"),
    (gpu_kernel.two_stages, (4, 6, 2, 4), "tiles that divide 6, but got 4"),
    (speed.roofline, (50.0, 200.0, {"a": (0.0, 1.0)}), "positive numbers, but got 0"),
    (speed.roofline, (50.0, 200.0, {}), "at least one point, but got none"),
    (speed.counted_and_measured, ({}, "copies"), "at least one row, but got none"),
    (speed.ratios, ({"p": {"1": {"a": RUNS[0]}, "2": {"b": RUNS[0]}}}, ""), "forms .* of 'p', but"),
    (speed.ratios, ({}, ""), "at least one panel, but got none"),
    (when_to_use.decision, ([], ""), "at least one question, but got none"),
    *(
        (when_to_use.shares, (bad,), "numbers above 0 and up to 100, but got")
        for bad in ({}, {"a": 0.0}, {"a": 101.0})
    ),
    *(
        (when_to_use.by_distance, (lines, [1.0, 2.0], ""), "1 to 4 lines of shape .*, but got")
        for lines in ({}, {"a": [1.0, 2.0]}, {key: [[1.0, 2.0]] for key in "abcde"})
    ),
    *(
        (blocks.attention_weights, ({"a": zeros(*shape)},), "tables of at most 6 by 6, but got")
        for shape in ((2,), (0, 2), (7, 2), (2, 2, 2))
    ),
    (blocks.attention_weights, ({},), "at least one panel, but got none"),
    (blocks.by_block, ({}, "size"), "at least one line, but got none"),
    (blocks.by_block, ({"one": RUNS[:1]}, "size"), "two seeds or more, but got"),
    (at_init.growth, (RUNS, [1, 1], [1, 1, 1]), "two bounds of the same shape .*, but got"),
    *(
        (at_init.growth, (bad, [1, 1, 1], [1, 1, 1]), r"\(runs, 3\), but got")
        for bad in (RUNS[0], RUNS[:0])
    ),
    (at_init.by_depth, ((2, 6), {}, []), "at least one panel .*, but got 0 panels"),
    (at_init.by_depth, ((2, 6, 12), {"": {"a": RUNS}}, ["", ""]), "got 1 panels and 2 labels"),
    (at_init.by_depth, ((2, 6), {"": {"a": RUNS}}, [""]), r"\(runs, 2\), but got \(2, 3\)"),
    (at_init.by_block, ({}, "norm"), "at least one panel, but got none"),
    (at_init.by_block, ({"": {"a": RUNS[0]}}, "norm"), r"shape \(runs, .*, but got \(3,\)"),
    (sequences.sentences, ([], 3), r"at most 3 words, but got lengths \[\]"),
    (sequences.sentences, ([list("abcd")], 3), r"at most 3 words, but got lengths \[4\]"),
    (sequences.padding, ([], {}), "at least one norm, but got none"),
    (sequences.company, ({}, 0.0), "at least one batch size, but got none"),
    *(
        (sequences.reach, (panels,), r"arrays of the same shape \(L, N, L\), but got")
        for found in [np.zeros((3, 2, 3), dtype=bool)]
        for panels in ({}, {"a": found[:2]}, {"a": found, "b": found[:, :1]}, {"a": found[0]})
    ),
    (sequences.guesses, ({},), "at least one model, but got none"),
    (training.curves, ({}, {}), "something to draw, but got nothing"),
    (training.by_rate, ({}, {}), "something to draw, but got nothing"),
    (training.by_block, ({}, "x"), "something to draw, but got nothing"),
    (training.by_depth, ((1,), {}, "x"), "something to draw, but got nothing"),
    (training.finals, ({}, {}), "something to draw, but got nothing"),
    (variants.by_block, ({}, "size"), "at least one panel, but got none"),
    (variants.keys, ({},), "at least one panel, but got none"),
    (variants.losses, ({},), "at least one panel, but got none"),
    (block_figures.blocks, ({}, NAMES), r"three axes, or of four, but got \[\]"),
    (block_figures.blocks, ({"a": MASK[0]}, NAMES), r"or of four, but got \[\(3, 4\)\]"),
    (block_figures.blocks, ({"a": FOUR_AXES, "b": MASK}, ("x", *NAMES)), "or of four, but got"),
    (block_figures.blocks, ({"a": FOUR_AXES}, NAMES), "4 names and 1 notes, but got 3 and 1"),
    (block_figures.blocks, ({"a": MASK}, NAMES, ["", ""]), "3 names and 1 notes, but got 3 and 2"),
    *(
        (block_figures.moved, (panels, (0, 0, 0)), r"arrays of the same shape \(N, L, D\), but got")
        for panels in ({}, {"a": MASK, "b": MASK[:1]}, {"a": MASK[0]})
    ),
    (block_figures.moved, ({"a": MASK}, (0, 3, 0)), r"a place, but got \(0, 3, 0\)"),
    (why.settings, ({}, [1.0], [0.1]), "at least one panel, but got none"),
    (why.settings, ({"a": RUNS}, [1.0], [0.1]), r"shares of shape \(1, 1\), but got \(2, 3\)"),
    (why.signals, ({},), "at least one panel, but got none"),
    (why.by_rate, ({}, {}, 4.0), "at least one panel, but got none"),
    (shared.seed_dots, ({}, "loss"), "at least one panel, but got none"),
    (shared.stages, ({},), r"at least one row, all of the same shape, but got \[\]"),
    (shared.stages, ({"one": [1.0], "two": [1.0, 2.0]},), r"but got \[\(1,\), \(2,\)\]"),
    (shared.over_steps, ({},), "at least one panel, but got none"),
    (shared.over_steps, ({"a": {"b": [1.0]}},), r"shape \(runs, steps\), but got \(1,\)"),
]
OPTIONS = {variants.losses: {"worst": 4.0, "label": "loss"}, lstm_training.curves: {"label": ""}}


def public() -> dict[str, Callable[..., Figure]]:
    """Every drawing function, keyed by its full name."""
    paths = [*CHAPTERS.glob("*/*/figures.py"), *CHAPTERS.glob("shared/*figures.py")]
    parts = (path.relative_to(CHAPTERS).with_suffix("").parts for path in paths)
    modules = [importlib.import_module(".".join(("lnbook.chapters", *names))) for names in parts]
    return {f"{m.__name__}.{name}": getattr(m, name) for m in modules for name in m.__all__}


def test_every_figure_that_refuses_something_is_in_the_table() -> None:
    tried = {draw for draw, _, _ in REFUSED}
    refusing = [draw for draw in public().values() if "Raises:" in (draw.__doc__ or "")]
    assert len(refusing) > 30
    assert not [d.__name__ for d in refusing if d not in tried], "add a row for it to REFUSED"


@pytest.mark.parametrize(("draw", "arguments", "words"), REFUSED)
def test_what_cannot_be_drawn_is_refused(
    draw: Callable[..., Figure], arguments: tuple[Any, ...], words: str
) -> None:
    with pytest.raises((ValueError, IndexError)) as caught:
        draw(*arguments, **OPTIONS.get(draw, {}))
    assert re.search(rf"^({draw.__name__}: )?expected .*{words}", str(caught.value))


def test_every_figure_is_shown_in_a_chapter() -> None:
    """A figure that isn't shown has no snapshot to compare."""
    chapters = (CHAPTERS.parents[1] / "book").glob("*/*.md")
    called = set(re.findall(r"figures\.(\w+)\(", "\n".join(path.read_text() for path in chapters)))
    assert [full for full, draw in public().items() if draw.__name__ not in called] == []


STEPS = [
    ("Is there a trained", "Like ConvNeXt: LayerNorm2d."),
    ("Is it two,\nor three?", "Take two,\nor three,\nor four."),
]
COLUMNS, ROWS = np.array([[3.33] * 4, [10.25] * 4]), np.array([[3.33] * 3, [10.25] * 3])
NOTE = "C/2, H, W\n" r"$N \cdot H \cdot W$ groups"
WITH_TEXTS = {
    "block names and notes": lambda: block_figures.blocks({"a": MASK}, NAMES, ["a longer note"]),
    "blocks side by side": lambda: block_figures.blocks({"a": FOUR_AXES}, ("x", *NAMES), ["note"]),
    "notes of a family": lambda: family.members(dict.fromkeys("abc", MASK), NAMES, [NOTE] * 3),
    "statistics": lambda: two_axes.columns_and_rows(zeros(3, 4) + 5, COLUMNS, ROWS),
    "process": step_by_step.process,
    "bars": lambda: autograd_function.memory_bars({"plain": 4.0, "ours": 1.125}),
    "graph": derivation.computation_graph,
    "nudge": lambda: derivation.nudge([1.0, 2.0, 9.0], [0.5, -0.25, 0.125]),
    "spectrum": lambda: jacobian.spectrum({"one": [0.0, 0.5, 1.0], "two": [0.25, 0.5, 2.0]}),
    "cell": cell.cell,
    "decision": lambda: when_to_use.decision(STEPS, "Take none."),
    "post and pre": blocks.post_and_pre,
    "stages": lambda: shared.stages({"one": [4.0, 2.0, 8.0], "two": [-1.0, 0.0, 1.0]}),
}


@pytest.mark.parametrize("name", WITH_TEXTS)
def test_no_text_lies_on_another_or_outside(name: str) -> None:
    figure = WITH_TEXTS[name]()
    assert overlapping(figure) == []
    assert outside(figure) == []
    assert figure.get_size_inches()[0] == WIDTH


def test_long_labels_stay_on_the_figure() -> None:
    tests = [*["the usual test"] * 4, "mean 10,000, spread 0.01", "two dimensions", "all together"]
    figure = from_scratch.caught(np.ones((9, 7)), ["gamma and beta ignored"] * 9, tests)
    (axes,) = figure.axes
    assert outside(figure, [*axes.get_xticklabels(), *axes.get_yticklabels()]) == []


def test_the_texts_of_a_decision_lie_in_its_boxes() -> None:
    figure = when_to_use.decision(STEPS, "Take none.")
    figure.draw_without_rendering()
    (axes,) = figure.axes
    frames = [patch.get_window_extent() for patch in axes.patches if hasattr(patch, "get_boxstyle")]
    assert len(frames) == 2 * len(STEPS) + 1
    assert not any(a.overlaps(b) for i, a in enumerate(frames) for b in frames[i + 1 :])
    for text in axes.texts:
        place = text.get_window_extent()
        fits = [f.contains(*place.min) and f.contains(*place.max) for f in frames]
        assert sum(fits) == (text.get_text() not in ("yes", "no")), text.get_text()


def test_a_colored_face_is_told_without_color() -> None:
    mask = MASK.copy()
    mask[0, 0] = True
    patches = block_figures.blocks({"token": mask}, NAMES).axes[0].patches
    filled = {(patch.get_facecolor(), bool(patch.get_hatch())) for patch in patches}
    assert len(filled) == 2
    assert {hatched for _, hatched in filled} == {True, False}


RUN = ([10, 20, 30], RUNS)
LABELED = {
    "two panels": (family.curves, ({"a": {"p": [1.0], "q": [1.0]}}, [1.0], "x"), ["p", "q"]),
    "two lines": (shared.over_steps, ({"a": {"p": RUNS, "q": RUNS}},), ["p", "q"]),
    "training": (training.curves, ({"a": {"p": RUN, "q": RUN}}, {"l": 1.0}), ["l", "p", "q"]),
    "one line needs none": (shared.over_steps, ({"a": {"line": RUNS}},), []),
}


@pytest.mark.parametrize("name", LABELED)
def test_lines_have_their_names_next_to_them(name: str) -> None:
    draw, arguments, expected = LABELED[name]
    figure = draw(*arguments)
    assert sorted(text.get_text() for axes in figure.axes for text in axes.texts) == expected
    assert not figure.legends


# Numbers that no chapter draws


def test_a_mean_of_rounding_errors_is_drawn_as_zero() -> None:
    row = np.array([0.1, 0.2, -0.3])
    assert row.mean() != 0
    for figure in (shared.stages({"one": row}), step_by_step.scale_and_shift({"one": row})):
        drawn = [list(end) for line in figure.axes[0].lines for end in line.get_data()]
        assert [0, 0] in drawn
        assert row.mean() not in np.concatenate(drawn)


def test_no_negative_zero_is_written() -> None:
    written = [
        [text.get_text() for text in figure.axes[0].texts]
        for figure in (two_axes.signs({"": [[-0.001, 0.0]]}), jacobian.matrix([[-0.004]]))
    ]
    assert written == [["0.00", "0.00"], ["0.00"]]
    assert two_axes.signs({"": zeros(2, 2)}).axes[0].patches[0].get_alpha() == 0.0, "0/0 means 0"


def test_a_draw_that_failed_is_an_error_and_no_point() -> None:
    batch = np.array([[np.nan] * 3, [-1.0, 1.0, -1.0]])
    above, below = train_and_eval.companions((1, 2), zeros(2, 3), batch).axes
    assert [text.get_text() for text in above.texts] == ["error"]
    assert np.isnan(above.lines[0].get_ydata()[:3]).all()
    assert not below.texts


def test_runs_that_broke_off_stand_at_the_edge_and_have_no_mean() -> None:
    runs = {"good": [2.0, 2.5], "bad": [2.0, np.inf, 9.0]}
    lines = variants.losses({"": runs}, worst=4.0, label="loss").axes[0].lines
    found = [line.get_xdata().tolist() for line in lines if len(line.get_xdata())]
    assert found == [[2.0, 2.5], [2.25, 2.25], [2.0], [4.0, 4.0]]


def test_a_model_looks_the_same_in_every_figure() -> None:
    few = training.curves({"": {"Post-LN": RUN, "Pre-LN": RUN}}, {})
    names = ["Post-LN", "Post-LN, warm-up", "other", "Pre-LN"]
    many = training.by_depth([6, 12], {name: [[1.0, 0.5]] for name in names}, "change")
    first, second = (
        {line.get_label(): (line.get_color(), line.get_marker()) for line in figure.axes[0].lines}
        for figure in (few, many)
    )
    assert first.items() <= second.items()
    assert len(set(second.values())) == len(names)


# Drawings of what the text describes


def test_the_cell_is_that_of_the_paper() -> None:
    """The norms go between each product and the sum, not on the path of the cell state."""
    norms = {name for name, box in cell.BOXES.items() if box[2] == "LN"}
    follow = {start: {end for one, end in cell.ARROWS if one == start} for start in norms}
    assert follow == {"LN1": {"sum"}, "LN2": {"sum"}, "LN3": {"tanh"}}
    assert {end for start, end in cell.ARROWS if start == "add"} == {"c1"}
    assert {start for start, end in cell.ARROWS if end == "LN3"} == {"c1"}
    shapes = {**cell.BOXES, **cell.CIRCLES}
    assert {name for pair in cell.ARROWS for name in pair} == set(shapes)
    assert all(shapes[start][1] >= shapes[end][1] for start, end in cell.ARROWS)


def test_the_arrows_of_the_graph_run_down() -> None:
    for start, end, _, (_, y) in derivation.EDGES:
        assert derivation.NODES[start][1] > y > derivation.NODES[end][1]


def test_norms_stand_on_the_stream_in_post_and_in_the_branch_in_pre() -> None:
    texts = blocks.post_and_pre().axes[0].texts
    norms = sorted(text.get_position() for text in texts if text.get_text() == "LN")
    post, pre = [x for x, _ in norms if x < 4.5], [x - 5 for x, _ in norms if x > 5.5]
    assert post == pytest.approx([blocks.STREAM] * 2)
    assert sorted(pre) == pytest.approx(sorted([blocks.BRANCH, blocks.BRANCH, blocks.STREAM]))


def test_space_is_seen_without_distortion_from_where_ones_point_up() -> None:
    basis = np.stack([geometry.RIGHT, geometry.BACK, geometry.UP])
    np.testing.assert_allclose(basis @ basis.T, np.eye(3), atol=1e-12)
    view = geometry._seen(np.eye(3)).T
    np.testing.assert_allclose(view @ view.T, np.eye(2), atol=1e-12)
    up = geometry._seen(geometry.UP[None])[0]
    np.testing.assert_allclose(up, [0.0, np.cos(geometry.TILT)], atol=1e-12)
