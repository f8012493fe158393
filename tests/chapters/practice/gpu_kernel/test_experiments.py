"""The GPU kernel experiments."""

import importlib.util
import json
import subprocess
import sys

import numpy as np
import pytest

from lnbook import measurements
from lnbook.chapters.practice.gpu_kernel import experiments

needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton isn't installed"
)
MODULE = "from lnbook.chapters.practice.gpu_kernel import experiments as gpu\n"


def run(code: str) -> str:
    """Run code in a new Python process: Triton decides on import whether to interpret kernels."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@needs_triton
def test_a_careless_kernel_is_right_only_at_powers_of_two() -> None:
    set_up = "import os, json; os.environ['TRITON_INTERPRET'] = '1'\n" + MODULE
    found = json.loads(
        run(set_up + "print(json.dumps(list(gpu.careless_scale([64, 768, 65, 2], 3.0, 2.0))))")
    )
    blocks = np.array([1.0, 1024 / 768, 128 / 65, 1.0])
    assert found == pytest.approx(2 / np.sqrt(4 + (blocks - 1) * 9))


NO_TRITON = "import sys; sys.modules['triton'] = None\n"


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (NO_TRITON, "This chapter expected Triton to be installed, but it isn't, so it"),
        pytest.param(
            "import triton\n", "been imported without it. Restart the notebook", marks=needs_triton
        ),
    ],
)
def test_one_message_says_why_the_chapter_cannot_be_run(before, words) -> None:
    code = f"import os; os.environ.pop('TRITON_INTERPRET', None)\n{before}{MODULE}"
    for call in ("gpu.require_triton()", "gpu.careless_scale([3], 1.0, 1.0)"):
        code += (
            f"try:\n    {call}\nexcept gpu.NoTritonError as error:\n"
            "    [line] = error._render_traceback_()\n    print(line)\n"
        )
    assert run(code).count(words) == 2


@needs_triton
def test_a_compiled_kernel_reads_and_writes_each_array_once() -> None:
    counts = experiments.compiled_accesses(4096)
    once = 4096 // 4 // counts["threads"]
    assert counts["loads"] == 3 * once  # loads of the row, the weight and the bias
    assert counts["stores"] == once


@pytest.mark.parametrize("width", [0, 512, 1025])
def test_a_width_whose_accesses_are_not_counted(width) -> None:
    with pytest.raises(ValueError, match=f"at least 1024, but got {width}"):
        experiments.compiled_accesses(width)


def test_bandwidths_are_found_by_norm_pass_and_dtype() -> None:
    def measured(norm, passes, width, dtype, ours):
        ways = {"native": 4.0, "compiled": 3.0, "Triton": ours, "copy": 1.0}
        return {
            "norm": norm,
            "passes": passes,
            "shape": [8, width],
            "dtype": dtype,
            "arrays": 3 if passes == "backward" else 2,
            "timings": [{"name": name, "milliseconds": ms} for name, ms in ways.items()],
        }

    record = measurements.Record(
        {},
        [
            measured("LayerNorm", "backward", 256, "float32", 2.0),
            measured("LayerNorm", "backward", 512, "float32", 1.5),
            measured("LayerNorm", "forward", 256, "float32", 9.0),
            measured("RMSNorm", "backward", 256, "float32", 9.0),
            measured("LayerNorm", "backward", 256, "bfloat16", 9.0),
        ],
    )
    found = experiments.bandwidths(record, "LayerNorm", "backward", "float32")
    assert found == {
        "PyTorch": {256: 0.375, 512: 0.375},
        "torch.compile": {256: 0.5, 512: 0.5},
        "lnbook": {256: 0.75, 512: 1.0},
    }
    for measurement in record.measurements:
        del measurement["timings"][1]
    assert list(experiments.bandwidths(record, "LayerNorm", "backward", "float32")) == [
        "PyTorch",
        "lnbook",
    ]
