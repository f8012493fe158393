"""Change lnbook's core in one place at a time, and list what the tests do not notice."""

import argparse
import os
import sys
import time
from pathlib import Path

import pytest
import torch

from mutation.memory import recall, remember
from mutation.mutants import Mutant, mutants
from mutation.reasons import Key, key, outdated, read_reasons
from mutation.report import LEAST, score, survivors, table
from mutation.run import SURVIVED, MutationRun

ROOT = Path(__file__).resolve().parents[1]
MEMORY = ROOT / "build" / "mutation" / "outcomes.json"
CORE = [
    "_check.py",
    "_check_tensors.py",
    "reference",
    "functional",
    "layers",
    "recurrent",
    "transformer",
]
TESTS = ["tests/library", "tests/property"]
# They test other things, at length; a bug in the core must be found without them.
LEFT_OUT = ("notebook", "figure_snapshot", "style", "worked", "measurements")
# Pytest's own loop over the tests never runs: it counts none.
GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def main() -> int:
    """Run the mutants that the arguments select, print what survived; return the exit status."""
    options = _options()
    os.chdir(ROOT)
    torch.set_num_threads(1)
    reasons, earlier = read_reasons(), recall(MEMORY)
    selected = {key(m, ROOT): m for path in _modules(options.modules) for m in mutants(path)}
    outcomes = {k: earlier[k] for k in selected if options.again and k in earlier}
    settled = {k for k, outcome in outcomes.items() if outcome != SURVIVED or k in reasons}
    tried = [m for k, m in selected.items() if k not in settled]

    def found(mutant: Mutant, outcome: str) -> None:
        outcomes[key(mutant, ROOT)] = outcome
        remember({**earlier, **outcomes}, MEMORY)

    began = time.monotonic()
    run = MutationRun(tried, ROOT, options.jobs, found)
    status = _pytest(run, options.tests)
    if run.reach is None or run.reach.failed or status not in GOOD:
        print("error: the tests do not pass without a mutant, or a mutant could not be tried")
        print(*(run.reach.failed if run.reach else []), sep="\n")
        return 2
    print(survivors(outcomes, reasons), table(outcomes), sep="\n\n")
    print(f"tried {len(tried)} mutants in {time.monotonic() - began:.0f} s")
    return _verdict(outcomes, reasons)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", default=CORE, help="files or folders under lnbook")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at the same time")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="the tests that judge")
    parser.add_argument("--again", action="store_true", help="only last survivors without a reason")
    return parser.parse_args()


def _modules(names: list[str]) -> list[Path]:
    paths = []
    for name in names:
        path = ROOT / "lnbook" / name
        paths += sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return paths


def _pytest(run: MutationRun, tests: list[str]) -> int:
    ignored = [f"--ignore-glob=*/test_{name}.py" for name in LEFT_OUT]
    own = ["-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider", "-q", "--no-header"]
    return pytest.main([*own, *ignored, *tests], plugins=[run])


def _verdict(outcomes: dict[Key, str], reasons: dict[Key, str]) -> int:
    alive = {named for named, outcome in outcomes.items() if outcome == SURVIVED}
    for named in outdated(reasons, alive, {named.module for named in outcomes}):
        print(f"note: its reason can go, this mutant does not survive: {named}")
    without = len(alive - reasons.keys())
    if without:
        print(f"error: {without} survivors without a reason: kill them, or say why they live")
    if score(outcomes) < LEAST:
        print(f"error: the score is below {100 * LEAST:.0f} %")
    return 1 if without or score(outcomes) < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
