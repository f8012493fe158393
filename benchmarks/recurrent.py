"""Layer-normalized LSTMs against `nn.LSTM`, a textbook cell in a loop, and a scripted cell.

Run with `python -m benchmarks.recurrent`; with `--quick` fewer rounds, and nothing is recorded.
Every variant has its first parameters, and the upstream gradient is random. The baselines are the
textbook form (one norm a gate after the sum, one module a norm, the input projected anew in every
step) and a cell in the way of PyTorch's benchmark `fastrnns`: joint norms, the normalized cell
carried, compiled by `torch.jit.script`.
"""

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import timing
from lnbook.experiments.speed import kept_bytes
from lnbook.recurrent import LayerNormLSTM

# Batch, steps, input size, hidden size.
SIZES = [(32, 128, 256, 256), (16, 784, 1, 128), (64, 64, 512, 512)]
VARIANTS = ("per-gate", "ba", "carried", "none")


class TextbookLSTM(nn.Module):
    """A layer whose cell has five norm modules, and whose loop does everything in every step."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.hidden_size = hidden_size
        self.from_input = nn.Linear(input_size, 4 * hidden_size, bias=False)
        self.from_hidden = nn.Linear(hidden_size, 4 * hidden_size, bias=False)
        self.gate_norms = nn.ModuleList([nn.LayerNorm(hidden_size) for _ in range(4)])
        self.cell_norm = nn.LayerNorm(hidden_size)

    def forward(self, x: Tensor) -> Tensor:
        """Return the hidden states of all steps, `(N, L, hidden_size)`."""
        h = c = x.new_zeros(len(x), self.hidden_size)
        outputs = []
        for t in range(x.shape[1]):
            parts = (self.from_input(x[:, t]) + self.from_hidden(h)).chunk(4, dim=1)
            i, f, g, o = (norm(part) for norm, part in zip(self.gate_norms, parts, strict=True))
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(self.cell_norm(c))
            outputs.append(h.unsqueeze(1))
        return torch.cat(outputs, dim=1)


class _ScriptedCell(nn.Module):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        scale = hidden_size**-0.5
        self.weight_x = nn.Parameter(scale * torch.randn(4 * hidden_size, input_size))
        self.weight_h = nn.Parameter(scale * torch.randn(4 * hidden_size, hidden_size))
        self.norm_x, self.norm_h = nn.LayerNorm(4 * hidden_size), nn.LayerNorm(4 * hidden_size)
        self.norm_c = nn.LayerNorm(hidden_size)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        from_input = self.norm_x(torch.mm(x, self.weight_x.t()))
        a = from_input + self.norm_h(torch.mm(h, self.weight_h.t()))
        i, f, g, o = a.chunk(4, dim=1)
        c = self.norm_c(torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g))
        return torch.sigmoid(o) * torch.tanh(c), c


class _ScriptedLayer(nn.Module):
    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.cell = _ScriptedCell(input_size, hidden_size)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> Tensor:
        outputs = torch.jit.annotate(list[Tensor], [])
        for step in x.unbind(0):
            h, c = self.cell(step, h, c)
            outputs += [h]
        return torch.stack(outputs)


def scripted_layer(input_size: int, hidden_size: int) -> Any:
    """Return the benchmark cell in its loop, compiled to TorchScript."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript calls itself deprecated
        return torch.jit.script(_ScriptedLayer(input_size, hidden_size))


def layers(
    batch: int, steps: int, input_size: int, hidden_size: int
) -> dict[str, tuple[nn.Module, Callable[[], Tensor]]]:
    """Return each layer with the call that runs it on a random input."""
    x = torch.randn(steps, batch, input_size)
    batch_first = x.transpose(0, 1).contiguous()
    zeros = torch.zeros(batch, hidden_size)
    native = nn.LSTM(input_size, hidden_size)
    textbook = TextbookLSTM(input_size, hidden_size)
    scripted = scripted_layer(input_size, hidden_size)
    result: dict[str, tuple[nn.Module, Callable[[], Tensor]]] = {
        "nn.LSTM": (native, lambda: native(x)[0]),
        "textbook": (textbook, lambda: textbook(batch_first)),
        "scripted": (scripted, lambda: scripted(x, zeros, zeros)),
    }
    for fast, kinds in ((True, VARIANTS), (False, ("per-gate", "ba"))):
        for variant in kinds:
            ours = LayerNormLSTM(input_size, hidden_size, variant=variant, fast=fast)
            name = variant if fast else f"{variant}, plain"
            result[name] = (ours, lambda ours=ours: ours(x)[0])  # type: ignore[misc]
    return result


def forward_backward(module: nn.Module, call: Callable[[], Tensor]) -> Callable[[], None]:
    """Return a function that runs `call` and backpropagates a fixed random gradient."""
    upstream = torch.randn_like(call())
    parameters = list(module.parameters())

    def run() -> None:
        torch.autograd.grad(call(), parameters, upstream)

    return run


def forward(call: Callable[[], Tensor]) -> Callable[[], None]:
    """Return a function that runs `call` without gradients."""

    @torch.no_grad()
    def run() -> None:
        call()

    return run


def measure(size: tuple[int, int, int, int], threads: int, rounds: int) -> list[dict[str, Any]]:
    """Time every layer at one size, with gradients and without."""
    torch.manual_seed(0)
    measurements = []
    everything = layers(*size)
    with timing.threads(threads):
        kinds = {
            "forward": {name: forward(call) for name, (_, call) in everything.items()},
            "forward and backward": {
                name: forward_backward(*layer) for name, layer in everything.items()
            },
        }
        for kind, ways in kinds.items():
            timings = timing.compare(ways, rounds)
            print(f"{size}, {threads} thread{'s' * (threads > 1)}, {kind}")
            print(timing.table(timings), flush=True)
            measurements.append(
                {"size": size, "threads": threads, "kind": kind, "timings": timings}
            )
    return measurements


def memory(size: tuple[int, int, int, int]) -> dict[str, Any]:
    """Count the bytes that each layer keeps for backward, per row of its input."""
    everything = layers(*size)
    rows = size[0] * size[1]
    saved = {
        name: kept_bytes(call, *module.parameters()) / rows
        for name, (module, call) in everything.items()
        if name != "scripted"  # its graph does not tell
    }
    print(f"{size}, bytes kept a row:", {name: round(value) for name, value in saved.items()})
    return {"size": size, "kind": "bytes kept a row", "bytes": saved}


def main(quick: bool) -> None:
    """Measure everything, print it, and record it unless `quick`."""
    measurements = [memory(size) for size in SIZES]
    for threads in (1, 2):
        for size in SIZES:
            measurements += measure(size, threads, 5 if quick else 11)
    if not quick:
        print(timing.write_record("recurrent", measurements).name)


if __name__ == "__main__":
    timing.settle_allocator()
    main("--quick" in sys.argv)
