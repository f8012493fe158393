"""Formats the results of a run."""

from collections import Counter
from collections.abc import Mapping

from mutation.reasons import Key, as_entry
from mutation.run import KILLED, SURVIVED, TIMED_OUT

LEAST = 0.95  # the fraction of mutants that must be killed


def score(outcomes: Mapping[Key, str]) -> float:
    """Return the fraction of mutants that didn't survive; 1 if there are none."""
    survived = sum(outcome == SURVIVED for outcome in outcomes.values())
    return 1 - survived / max(1, len(outcomes))


def table(outcomes: Mapping[Key, str]) -> str:
    """Return the counts for each module and in total."""
    rows = [_row("module", "mutants", KILLED, TIMED_OUT, SURVIVED, "score")]
    for module in sorted({key.module for key in outcomes}):
        rows.append(_counts(module, {k: v for k, v in outcomes.items() if k.module == module}))
    return "\n".join([*rows, _counts("total", outcomes)])


def _counts(name: str, outcomes: Mapping[Key, str]) -> str:
    count = Counter(outcomes.values())
    cells = (len(outcomes), count[KILLED], count[TIMED_OUT], count[SURVIVED])
    return _row(name, *cells, f"{100 * score(outcomes):.1f} %")


def _row(name: str, *cells: object) -> str:
    return f"{name:44}" + "".join(f"{cell!s:>10}" for cell in cells)


def survivors(outcomes: Mapping[Key, str], reasons: Mapping[Key, str]) -> str:
    """Return survivors with their reasons, then those without one as entries to fill in."""
    alive = [key for key, outcome in outcomes.items() if outcome == SURVIVED]
    known = [_line(key, reasons[key]) for key in alive if key in reasons]
    new = [as_entry(key) for key in alive if key not in reasons]
    return "\n".join([*known, *new])


def _line(key: Key, reason: str) -> str:
    number = f" ({key.number})" if key.number > 1 else ""
    where = f"{key.module}: {key.function}{number}"
    return f"{where}\n    - {key.before}\n    + {key.after}\n    {reason}"
