"""What people see if the environment can't be created."""

import http.server
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bookbuild.environment import bootstrap
from bookbuild.environment.bootstrap import CPU_INDEX

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("version", [(2, 7, 18), (3, 8, 18), (3, 10, 13)])
def test_an_old_python_is_refused(version: tuple[int, ...]) -> None:
    problem = bootstrap.python_problem(version, "/usr/bin/python3")
    assert problem is not None
    assert "needs Python 3.11 or newer" in problem
    assert f"/usr/bin/python3 is Python {version[0]}.{version[1]}" in problem
    assert "PYTHON=" in problem
    assert "\n" not in problem


@pytest.mark.parametrize("version", [(3, 11, 0), (3, 14, 1), (4, 0, 0)])
def test_a_newer_python_is_accepted(version: tuple[int, ...]) -> None:
    assert bootstrap.python_problem(version, "python3") is None


NETWORK = """\
WARNING: Retrying (Retry(total=1, connect=None)) after connection broken by
'NewConnectionError("HTTPSConnection: Failed to establish a new connection: [Errno -3] \
Temporary failure in name resolution")': /simple/numpy/
ERROR: Could not find a version that satisfies the requirement numpy (from versions: none)
ERROR: No matching distribution found for numpy
"""
COMPILER = """\
  Building wheel for psutil (pyproject.toml): finished with status 'error'
  error: command 'gcc' failed: No such file or directory
ERROR: Failed building wheel for psutil
"""
NO_BUILD = """\
ERROR: Could not find a version that satisfies the requirement torch==2.13.0 (from versions: none)
ERROR: No matching distribution found for torch==2.13.0
"""
DISK = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (NETWORK, "the package index cannot be reached"),
        (COMPILER, "compiling it failed: install a C compiler"),
        (NO_BUILD, "no build of torch==2.13.0 exists for this Python and machine"),
        (DISK, "the disk is full"),
        ("ERROR: something new\n\n", "could not be installed: ERROR: something new"),
        ("", "pip gave no reason"),
    ],
)
def test_the_cause_of_a_failed_installation(output: str, expected: str) -> None:
    told = bootstrap.cause(output)
    assert expected in told
    assert "\n" not in told


def test_it_runs_from_the_standard_library_alone() -> None:
    code = (
        "import sys; sys.path.insert(0, 'bookbuild/environment')\n"
        "import bootstrap; print(bootstrap.OLDEST)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout == "(3, 11)\n"


@pytest.mark.parametrize(
    ("asked", "platform", "gpu", "answers", "index", "told"),
    [
        ("", "linux", False, True, CPU_INDEX, "CPU-only"),
        ("", "linux", False, False, None, "does not answer"),
        ("", "linux", True, True, None, None),
        ("", "darwin", False, True, None, None),
        ("default", "linux", False, True, None, None),
        ("https://example.org/cu126", "linux", False, True, "https://example.org/cu126", None),
    ],
)
def test_where_pytorch_comes_from(
    asked: str, platform: str, gpu: bool, answers: bool, index: str | None, told: str | None
) -> None:
    chosen, line = bootstrap.torch_index(asked, platform, lambda: gpu, lambda _: answers)
    assert chosen == index
    assert (line is None) == (told is None)
    if told:
        assert told in line
        assert "TORCH_INDEX=" in line
        assert "\n" not in line


class Index(http.server.BaseHTTPRequestHandler):
    """An index that has only /good/torch/, and takes a while to answer requests for /slow."""

    def do_GET(self) -> None:
        if self.path.startswith("/slow"):
            self.server.go_on.wait(60)
        self.send_response(200 if self.path == "/good/torch/" else 404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Don't log requests."""


def test_an_index_that_answers_late_or_not_at_all_is_not_used() -> None:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index)
    server.go_on = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        assert bootstrap.answers(f"{address}/good", 60)
        assert not bootstrap.answers(f"{address}/bad", 60)
        assert not bootstrap.answers(f"{address}/slow", 0.2)
        assert not bootstrap.answers("http://127.0.0.1:1", 60)
    finally:
        server.go_on.set()
        server.shutdown()
        server.server_close()
