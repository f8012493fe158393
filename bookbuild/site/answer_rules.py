"""Turns a checker into rules that a browser can use to judge what a reader enters.

A checker reads its arguments with `as_array` or `as_count`, and passes them to `judge` along with
the right answer and the results of common mistakes; or it passes them to `judge_choice` or
`judge_letters`. Calling it once with blanks, while these functions record what they're given,
yields its rules. A checker that does anything else with its arguments has no such rules, so its
exercise is done in the notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lnbook.chapters.shared import checker
from lnbook.chapters.shared.checker import NotYet, Verdict

__all__ = ["FIELDS", "answer_rules"]

FIELDS = ("read", "choose", "letters")  # the keys under which a step names its field


class NoRulesError(Exception):
    """The checker does more than read and judge its arguments."""


@dataclass(eq=False)
class Blank:
    """An argument that the reader fills in. Computing with it is an error."""

    name: str
    shape: tuple[int, ...] = ()

    def _refuse(self, *_: Any) -> Any:
        raise NoRulesError(f"the checker computes with {self.name}")

    __array__ = __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = _refuse
    __getitem__ = __add__ = __radd__ = __mul__ = __rmul__ = __neg__ = __abs__ = _refuse
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def answer_rules(check: Callable[..., Verdict], names: Sequence[str]) -> dict[str, Any] | None:
    """The rules of a checker, as JSON: `steps` in order, then `praise`.

    A step reads a field (`read`, `what`, `shape`, `whole`: only whole numbers), judges one or more
    of these (`judge`, `expected`, `mistakes`, `otherwise`, `tolerance`, `relative`), or does both
    for a choice (`choose`, `name`, `replies`: null for the right choice) or for letters (`letters`,
    `reasons`).

    Args:
        check: a function decorated with `checker`.
        names: its arguments, in the order in which readers fill them in.

    Returns:
        The rules; None if the checker does more than read and judge.

    Example:
        >>> from lnbook.chapters.shared.checker import as_array, checker, judge
        >>> @checker
        ... def check(mean=None):
        ...     judge(as_array(mean, (), "Your mean"), 2.0, {}, otherwise="Add them up.")
        ...     return "The mean is 2."
        >>> answer_rules(check, ["mean"])["praise"]
        'The mean is 2.'
    """
    steps: list[dict[str, Any]] = []
    inner = check.__wrapped__  # type: ignore[attr-defined]
    scope = inner.__globals__
    recorders = {
        "as_array": lambda answer, shape, what: _read(steps, answer, shape, what, whole=False),
        "as_count": lambda answer, what: _read(steps, answer, (), what, whole=True),
        "judge": lambda *args, **kwargs: steps.append(_judged(*args, **kwargs)),
        "judge_choice": lambda *args: steps.append(_choice(*args)),
        "judge_letters": lambda *args: steps.append(_letters(*args)),
    }
    real = {name: scope[name] for name in recorders if name in scope}
    if any(real[name] is not getattr(checker, name) for name in real):
        raise ValueError(f"{inner.__module__} defines its own {', '.join(real)}")
    scope.update({name: recorders[name] for name in real})
    try:
        praise = inner(**{name: Blank(name) for name in names})
    except (NoRulesError, NotYet, TypeError, AttributeError):
        return None
    finally:
        scope.update(real)
    filled = [step[kind] for step in steps for kind in FIELDS if kind in step]
    return {"steps": steps, "praise": praise} if filled == list(names) else None


def _read(
    steps: list[dict[str, Any]], answer: Any, shape: tuple[int, ...], what: str, *, whole: bool
) -> Blank:
    if not isinstance(answer, Blank):
        raise NoRulesError("the checker reads something that isn't an argument")
    answer.shape = tuple(shape)
    step = {"read": answer.name, "what": what, "shape": list(shape)}
    steps.append(step | ({"whole": True} if whole else {}))
    return answer


def _judged(
    answer: Any,
    expected: Any,
    mistakes: Mapping[str, Any],
    *,
    otherwise: str,
    tolerance: float = 1e-5,
    relative: bool = False,
) -> dict[str, Any]:
    blanks = answer if isinstance(answer, list) else [answer]
    if not all(isinstance(blank, Blank) for blank in blanks):
        raise NoRulesError("the checker judges something that isn't an argument")
    shape = (len(blanks),) if isinstance(answer, list) else answer.shape
    values = {text: np.asarray(one() if callable(one) else one) for text, one in mistakes.items()}
    return {
        "judge": [blank.name for blank in blanks],
        "expected": np.broadcast_to(np.asarray(expected, float), shape).ravel().tolist(),
        "mistakes": [
            [text, value.astype(float).ravel().tolist()]
            for text, value in values.items()
            if value.shape == shape
        ],
        "otherwise": otherwise,
        "tolerance": tolerance,
        "relative": relative,
    }


def _choice(
    answer: Any,
    name: str,
    options: Collection[str],
    right: str | Collection[str],
    replies: str | Mapping[str, str],
) -> dict[str, Any]:
    if not isinstance(answer, Blank):
        raise NoRulesError("the checker judges something that isn't an argument")
    said = dict.fromkeys(options, replies) if isinstance(replies, str) else replies
    rights = (right,) if isinstance(right, str) else right
    return {
        "choose": answer.name,
        "name": name,
        "replies": {option: None if option in rights else said[option] for option in options},
    }


def _letters(answer: Any, reasons: Mapping[str, tuple[bool, str]]) -> dict[str, Any]:
    if not isinstance(answer, Blank):
        raise NoRulesError("the checker judges something that isn't an argument")
    listed = [[letter, belongs, why] for letter, (belongs, why) in reasons.items()]
    return {"letters": answer.name, "reasons": listed}
