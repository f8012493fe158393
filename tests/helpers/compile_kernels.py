"""Compile the CPU kernels before the tests need them: `python -m tests.helpers.compile_kernels`.

The machine code is cached next to the kernels. `make test` runs this first, and CI even earlier, on
a core that's idle anyway. Otherwise, each process would have to compile what it needs, sometimes at
the same time, and a chapter that compiles several kernels needs up to a quarter more memory.
"""

import torch

from lnbook.layers import LayerNorm, RMSNorm
from lnbook.recurrent import LayerNormLSTM


def main() -> None:
    """Call every kernel once with each dtype that it's compiled for."""
    for dtype in (torch.float32, torch.float64):
        lstm = LayerNormLSTM(2, 3, implementation="fused", dtype=dtype)
        lstm(torch.ones(2, 1, 2, dtype=dtype))[0].sum().backward()
    for norm in (LayerNorm, RMSNorm):
        for dtype in (torch.float32, torch.float64, torch.bfloat16):
            layer = norm(4, implementation="fused", dtype=dtype)
            layer(torch.ones(2, 4, dtype=dtype)).sum().backward()


if __name__ == "__main__":
    main()
