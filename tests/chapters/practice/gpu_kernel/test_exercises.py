"""The checkers for GPU kernels accept correct answers and recognize known mistakes."""

import importlib.util
import math
import os
import subprocess
import sys

import pytest

from lnbook.chapters.practice.gpu_kernel import exercises
from lnbook.chapters.practice.gpu_kernel.experiments import NoTritonError
from tests.helpers.verdicts import verdict_test

PARTS = 2 * 264 * 5000 * 4


def shrinking(width, block, mean, deviation):
    return deviation / math.sqrt(deviation**2 + (block / width - 1) * mean**2)


ANSWERS = {
    exercises.check_launch: [
        ("Correct. 10.6 MB", 8192, 3192, PARTS),
        ("block is still missing",),
        ("a power of two, the smallest", 5000),
        ("a power of two, the smallest", 1024),
        ("don't all fit", 4096),
        ("a smaller power", 16384),
        ("not masked", 8192, 5000),
        ("beyond the end of the row", 8192, 192),
        ("twice that", 8192, 3192, PARTS // 2),
        ("two parameters, and sums are kept in float32", 8192, 3192, PARTS // 4),
        ("aren't stored", 8192, 3192, 2 * 264 * 8192 * 4),
        ("How many bytes", 8192, 3192, 264 * 5000),
        ("times programs times", 8192, 3192, 17),
    ],
    exercises.check_shrinking: [
        ("Correct.", shrinking),
        ("A correct kernel gives", lambda *_: 1.0),
        ("upside down", lambda *a: 1 / shrinking(*a)),
        ("the ratio's square", lambda *a: shrinking(*a) ** 2),
        (
            "not by the size of the block",
            lambda w, b, m, s: s / math.sqrt((w * s**2 + (b - w) * m**2) / b),
        ),
        ("what is 0 - mean", lambda w, b, m, s: s / math.sqrt(abs(s**2 + (b / w - 1) * m))),
        ("as if it were masked", lambda w, b, m, s: s / math.sqrt(s**2 + b / w * m**2)),
        ("Divide that by the width", lambda w, b, m, s: s / math.sqrt(s**2 + (b - w) * m**2)),
        ("Add up the squares", lambda w, b, m, s: 0.5),
        ("raised ZeroDivisionError", lambda w, b, m, s: 1 / 0),
    ],
}

test_answers = verdict_test(ANSWERS)


KERNEL = """
import os
os.environ["TRITON_INTERPRET"] = "1"
import triton
import triton.language as tl
from lnbook.chapters.practice.gpu_kernel.exercises import check_rms_kernel

@triton.jit
def kernel(x, weight, y, eps: tl.constexpr, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    values = tl.load(x + row * WIDTH + columns, mask=inside, other=0.0)
    gamma = tl.load(weight + columns, mask=inside, other=0.0)
    r = 1 / tl.sqrt(tl.sum(values * values) / WIDTH + eps)
    tl.store(y + row * WIDTH + columns, values * r * gamma, mask=inside)

def plain(*_):
    pass

print(check_rms_kernel(kernel))
"""
R = "r = 1 / tl.sqrt(tl.sum(values * values) / WIDTH + eps)"
STORE = "tl.store(y + row * WIDTH + columns, values * r * gamma, mask=inside)"
LOAD = "values = tl.load(x + row * WIDTH + columns, mask=inside, other=0.0)"
GAMMA = "gamma = tl.load(weight + columns, mask=inside, other=0.0)"
CENTERED = f"{LOAD}\n    values = tl.where(inside, values - tl.sum(values) / WIDTH, 0.0)"


# A few words from the verdict, and how the answer differs from the correct one.
KERNELS = [
    ("Correct.", "", ""),
    ("put `@triton.jit` above", "check_rms_kernel(kernel)", "check_rms_kernel(plain)"),
    ("stores nothing", STORE, "pass"),
    ("writes beyond", "gamma, mask=inside", "gamma"),
    ("Correct.", LOAD, f"{LOAD}.to(tl.float32)"),
    ("Correct.", GAMMA, GAMMA.replace(", other=0.0", "")),  # what's masked isn't stored
    ("reads beyond the end of `x`", LOAD, LOAD.replace(", mask=inside, other=0.0", "")),
    (
        "reads beyond the end of `x`",
        LOAD,
        "values = tl.where(inside, tl.load(x + row * WIDTH + columns), 0.0)",
    ),
    ("reads beyond the end of `weight`", GAMMA, GAMMA.replace(", mask=inside, other=0.0", "")),
    ("add `other=0.0`", LOAD, LOAD.replace(", other=0.0", "")),
    ("the size of the block", "/ WIDTH + eps", "/ BLOCK + eps"),
    ("not averaged", "/ WIDTH + eps", "+ eps"),
    ("subtracted the mean", LOAD, CENTERED),
    ("eps is missing", " + eps)", ")"),
    ("belongs inside", R, "r = 1 / (tl.sqrt(tl.sum(values * values) / WIDTH) + eps)"),
    ("The weight is missing", " * gamma, mask", ", mask"),
    ("Take its square root", "1 / tl.sqrt(", "1 / ("),
    ("Divide by it", "1 / tl.sqrt(", "tl.sqrt("),
    ("Compare one row", " * gamma, mask", " * gamma * 1.1, mask"),
    ("Your kernel raised", "gamma = tl", "gamma = nothing + tl"),
]


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton isn't installed")
def test_a_kernel_for_rms_norm(tmp_path) -> None:
    for number, (_, old, new) in enumerate(KERNELS):
        assert old in KERNEL
        script = tmp_path / f"{number:02d}.py"  # Triton reads a kernel's source from its file
        script.write_text(KERNEL.replace(old, new) if old else KERNEL)
    run_all = "import pathlib, runpy\nfor path in sorted(pathlib.Path('.').glob('*.py')):\n"
    done = subprocess.run(
        [sys.executable, "-c", run_all + "    runpy.run_path(str(path))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    lines = [line for line in done.stdout.splitlines() if line]
    assert len(lines) == len(KERNELS)
    for line, (words, _, _) in zip(lines, KERNELS, strict=True):
        assert words in line
        assert line.startswith("Correct.") == (words == "Correct.")


def test_without_the_interpreter_a_kernel_is_not_judged() -> None:
    with pytest.raises(NoTritonError, match="expected.* Triton"):
        exercises.check_rms_kernel(print)
