"""How long a chapter takes, computed from what stands in it by one rule for all chapters."""

from __future__ import annotations

from dataclasses import dataclass

from docutils import nodes
from sphinx_exercise.nodes import exercise_enumerable_node, exercise_node, solution_node

# The rule. Explanatory prose with symbols is read more slowly than a story; code and formulas are
# worked through, not read. book/running.md says the same in words.
WORDS_A_MINUTE = 180
SECONDS = {"line of code": 4, "formula": 2, "equation": 15, "figure": 25}
MINUTES_AN_EXERCISE = 7
ROUND = 5


@dataclass(frozen=True)
class ReadingTime:
    """Minutes to read a chapter, and minutes more to solve its exercises."""

    reading: int
    exercises: int
    solving: int


def reading_time(doctree: nodes.Element) -> ReadingTime:
    """Apply the rule to a page; times are rounded to five minutes, and never 0."""
    counts = dict.fromkeys(SECONDS, 0)
    words = exercises = 0
    for node in _seen(doctree):
        if isinstance(node, nodes.Text):
            words += len(node.astext().split())
        elif isinstance(node, nodes.math):
            counts["formula"] += 1
        elif isinstance(node, nodes.math_block):
            counts["equation"] += 1
        elif isinstance(node, nodes.literal_block):
            counts["line of code"] += sum(bool(line.strip()) for line in node.astext().splitlines())
        elif isinstance(node, nodes.figure):
            counts["figure"] += 1
        elif isinstance(node, exercise_node | exercise_enumerable_node):
            exercises += 1
    seconds = sum(SECONDS[what] * count for what, count in counts.items())
    return ReadingTime(
        reading=_rounded(words / WORDS_A_MINUTE + seconds / 60),
        exercises=exercises,
        solving=_rounded(exercises * MINUTES_AN_EXERCISE) if exercises else 0,
    )


def _rounded(minutes: float) -> int:
    return max(ROUND, ROUND * round(minutes / ROUND))


def _seen(node: nodes.Node) -> list[nodes.Node]:
    """What a reader goes through: not what is folded, and not the outputs of cells."""
    if isinstance(node, solution_node) or _is_folded(node):
        return []
    if isinstance(node, nodes.Text | nodes.math | nodes.math_block | nodes.literal_block):
        return [node]
    found = [node]
    for child in node.children:
        found += _seen(child)
    return found


def _is_folded(node: nodes.Node) -> bool:
    if not isinstance(node, nodes.Element):
        return False
    if "dropdown" in node.get("classes", ()):
        return True
    is_source = node.get("nb_element") == "cell_code_source"
    if is_source and node.parent is not None:
        return bool(node.parent.get("hide_mode"))
    # The output of a cell is looked at with its code; a figure in it counts as a figure.
    return bool(node.get("mime_type")) and not any(node.findall(nodes.math_block))
