"""Change lnbook's core in one place at a time, and list the changes that the tests miss."""

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
# These are slow and test other things; bugs in the core must be caught without them.
LEFT_OUT = ("notebook", "figure_snapshot", "style", "worked", "measurements")
# Pytest's own test loop never runs, so it reports that no tests were found.
GOOD = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


def main() -> int:
    """Run the selected mutants and print the survivors; return the exit status."""
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
        print("error: the tests fail without a mutant, or a mutant could not be tried")
        print(*(run.reach.failed if run.reach else []), sep="\n")
        return 2
    print(survivors(outcomes, reasons), table(outcomes), sep="\n\n")
    print(f"tried {len(tried)} mutants in {time.monotonic() - began:.0f} s")
    return _verdict(outcomes, reasons)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m mutation", description=__doc__)
    parser.add_argument("modules", nargs="*", default=CORE, help="files or folders under lnbook")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants to run at once")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="the tests to run")
    parser.add_argument(
        "--again", action="store_true", help="only last time's unexplained survivors"
    )
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
        print(f"note: remove its reason, this mutant no longer survives: {named}")
    without = len(alive - reasons.keys())
    if without:
        print(f"error: {without} survivors without a reason: kill or explain them")
    if score(outcomes) < LEAST:
        print(f"error: the score is below {100 * LEAST:.0f} %")
    return 1 if without or score(outcomes) < LEAST else 0


if __name__ == "__main__":
    sys.exit(main())
