"""What the last run found, kept in build/mutation: to try only its survivors again."""

import json
from collections.abc import Mapping
from pathlib import Path

from mutation.reasons import Key


def remember(outcomes: Mapping[Key, str], path: Path) -> None:
    """Write the outcome of each mutant, so that an interrupted run leaves what it found."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")  # a concurrent reader still finds the old file, complete
    new.write_text(json.dumps([[vars(key), outcome] for key, outcome in outcomes.items()]))
    new.replace(path)


def recall(path: Path) -> dict[Key, str]:
    """Return what `remember` wrote; nothing if there is no such file."""
    if not path.exists():
        return {}
    return {Key(**key): outcome for key, outcome in json.loads(path.read_text())}
