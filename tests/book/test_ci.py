"""What CI runs: the steps in order, and then a table of how long each took, even if one fails."""

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A stand-in for every program: prints its arguments, and fails on request.
STUB = """#!/bin/sh
echo "$(basename "$0") $*" >> "$CALLS"
[ "$1" = --version ] && echo "GNU Make 4.3"
[ "$1" = setup ] && sleep 1.1
[ "$(basename "$0") $*" != "$FAILS" ]
"""
MAKES = [
    "clean",
    "setup",
    "book",
    "test",
    "reproduce SETTINGS=noise-0 CHANGED=1",
    "check-site",
    "lighthouse SAMPLE=1",
]


def run_ci(folder: Path, fails: str = "") -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run a copy of the script with programs that only record how they were called."""
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    programs = folder / "programs"
    programs.mkdir()
    for name in ("make", "python3", "git", "chromium", "apt-get"):
        path = programs / name
        path.write_text(STUB)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
    calls = folder / "calls"
    done = subprocess.run(
        [folder / ".ci" / "run"],
        env={"PATH": f"{programs}:{os.environ['PATH']}", "CALLS": str(calls), "FAILS": fails},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, calls.read_text().splitlines()


def test_every_step_runs_and_is_timed(tmp_path: Path) -> None:
    done, calls = run_ci(tmp_path)
    assert done.returncode == 0, done.stderr
    made = [call.removeprefix("make ") for call in calls if call.startswith("make ")]
    assert [call for call in made if call != "--version"] == MAKES
    assert not any(call.startswith("apt-get") for call in calls), "nothing is missing"
    steps = re.findall(r"^== (.+)$", done.stdout, re.MULTILINE)
    assert len(set(steps)) == len(steps) >= len(MAKES)
    assert re.findall(r"^-- (.+): \d+ s$", done.stdout, re.MULTILINE) == steps
    table = done.stdout.partition("seconds  step\n")[2].splitlines()
    assert [line.split(maxsplit=1)[1] for line in table] == [*steps, "all"]
    seconds = [int(line.split()[0]) for line in table]
    assert seconds[-1] == sum(seconds[:-1])
    assert seconds[steps.index("Environment")] >= 1


def test_a_step_that_fails_ends_it_with_the_times_so_far(tmp_path: Path) -> None:
    done, calls = run_ci(tmp_path, fails="make test")
    assert done.returncode == 1
    assert calls[-1] == "make test"
    assert done.stderr == 'error: "Tests" failed\n'
    table = done.stdout.partition("seconds  step\n")[2].splitlines()
    assert [line.split(maxsplit=1)[1] for line in table][-2:] == ["Tests", "all"]
