"""Stores the last run's results in build/mutation, so that only its survivors can be retried."""

import json
from collections.abc import Mapping
from pathlib import Path

from mutation.reasons import Key


def remember(outcomes: Mapping[Key, str], path: Path) -> None:
    """Write each mutant's outcome, so that an interrupted run keeps its results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")  # meanwhile, readers still see the complete old file
    new.write_text(json.dumps([[vars(key), outcome] for key, outcome in outcomes.items()]))
    new.replace(path)


def recall(path: Path) -> dict[Key, str]:
    """Return what `remember` wrote; empty if there is no file."""
    if not path.exists():
        return {}
    return {Key(**key): outcome for key, outcome in json.loads(path.read_text())}
