"""Time transformer blocks and PyTorch's layer: `make measure NAME=practice/speed/transformer`.

Causal blocks are also compared with one that computes attention weights and never uses them.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks import timing
from lnbook.chapters.practice.speed.experiments import kept_bytes
from lnbook.transformer import (
    CausalLanguageModel,
    DeepNormBlock,
    PeriLNBlock,
    PostLNBlock,
    PreLNBlock,
)

PROCESSES = 3
ROUNDS = 11  # samples per implementation
BLOCKS: dict[str, type[Any]] = {"post": PostLNBlock, "pre": PreLNBlock}


class WeightsBlock(nn.Module):
    """A textbook block with `nn.MultiheadAttention`, which computes weights and never uses them."""

    def __init__(self, d_model: int, nhead: int, dim_feedforward: int, norm_first: bool) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.network = nn.Sequential(
            nn.Linear(d_model, dim_feedforward), nn.ReLU(), nn.Linear(dim_feedforward, d_model)
        )
        self.norms = nn.ModuleList([nn.LayerNorm(d_model), nn.LayerNorm(d_model)])

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output of the Pre-LN or the Post-LN block."""
        if self.norm_first:
            y = self.norms[0](x)
            x = x + self.attention(y, y, y, attn_mask=mask)[0]
            x = x + self.network(self.norms[1](x))
        else:
            x = self.norms[0](x + self.attention(x, x, x, attn_mask=mask)[0])
            x = self.norms[1](x + self.network(x))
        return x


def forward_backward(call: Callable[[Tensor], Tensor], x: Tensor, module: nn.Module) -> Any:
    """Return a function that runs `call` on `x` and backpropagates a fixed gradient."""
    upstream = torch.randn_like(x)
    inputs = [x, *module.parameters()]

    def run() -> None:
        torch.autograd.grad(call(x), inputs, upstream)

    return run


def forward(call: Callable[[Tensor], Tensor], x: Tensor) -> Any:
    """Return a function that runs `call` on `x` without gradients."""

    @torch.no_grad()
    def run() -> None:
        call(x)

    return run


def pytorchs_layer(d_model: int, nhead: int, width: int, placement: str, p: float) -> nn.Module:
    """Return PyTorch's layer, Pre-LN or Post-LN."""
    return nn.TransformerEncoderLayer(
        d_model, nhead, width, p, batch_first=True, norm_first=placement == "pre"
    )


def measure_blocks(rounds: int, threads: int) -> list[dict[str, Any]]:
    """Compare blocks without a mask with PyTorch's layer."""
    measurements = []
    cases: list[tuple[tuple[int, int, int], int, float, str, str]] = [
        ((8, 256, 512), 2048, 0.0, "post", "forward+backward"),
        ((8, 256, 512), 2048, 0.0, "pre", "forward+backward"),
        ((8, 256, 512), 2048, 0.1, "pre", "forward+backward"),
        ((8, 256, 512), 2048, 0.0, "pre", "forward"),
        ((8, 32, 64), 256, 0.0, "pre", "forward+backward"),
    ]
    for shape, width, dropout, placement, direction in cases:
        torch.manual_seed(0)
        d_model = shape[-1]
        modules = {
            "nn.TransformerEncoderLayer": pytorchs_layer(d_model, 8, width, placement, dropout),
            "lnbook": BLOCKS[placement](d_model, 8, width, dropout),
            "lnbook, nn.LayerNorm": BLOCKS[placement](
                d_model, 8, width, dropout, norm=nn.LayerNorm
            ),
        }
        x = torch.randn(shape, requires_grad=direction != "forward")
        ways = {
            name: forward(module.eval(), x)
            if direction == "forward"
            else forward_backward(module, x, module)
            for name, module in modules.items()
        }
        saved = {
            name: kept_bytes(partial(module, x), x, *module.parameters())
            for name, module in modules.items()
        }
        title = f"{placement}-LN block, dropout {dropout}"
        measurements.append(report(title, shape, direction, threads, ways, rounds, saved))
    return measurements


def without_weights(block: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a function that computes a causal block's attention weights and discards them."""
    return lambda x: block(x, is_causal=True, need_weights=True)[0]


def measure_causal(rounds: int, threads: int) -> list[dict[str, Any]]:
    """Compare causal blocks with PyTorch's layer and with a block that computes the weights."""
    measurements = []
    for shape, placement in [((4, 1024, 256), "pre"), ((1, 2048, 256), "pre"),
                             ((1, 2048, 256), "post")]:  # fmt: skip
        torch.manual_seed(0)
        d_model, width = shape[-1], 4 * shape[-1]
        mask = nn.Transformer.generate_square_subsequent_mask(shape[1])
        ours = BLOCKS[placement](d_model, 8, width, 0.0)
        theirs = pytorchs_layer(d_model, 8, width, placement, 0.0)
        weights = WeightsBlock(d_model, 8, width, placement == "pre")
        calls: dict[str, tuple[Callable[[Tensor], Tensor], nn.Module]] = {
            "lnbook": (partial(ours, is_causal=True), ours),
            "nn.TransformerEncoderLayer": (partial(theirs, src_mask=mask, is_causal=True), theirs),
            "with unread weights": (partial(weights, mask=mask), weights),
            "lnbook, weights returned": (without_weights(ours), ours),
        }
        x = torch.randn(shape, requires_grad=True)
        ways = {name: forward_backward(call, x, module) for name, (call, module) in calls.items()}
        saved = {
            name: kept_bytes(partial(call, x), x, *module.parameters())
            for name, (call, module) in calls.items()
        }
        title = f"causal {placement}-LN block"
        measurements.append(report(title, shape, "forward+backward", threads, ways, rounds, saved))
    return measurements


def measure_kinds(rounds: int, threads: int) -> list[dict[str, Any]]:
    """Compare the blocks, and the query and key norms, with the Pre-LN block."""
    shape, d_model, width = (8, 128, 256), 256, 1024
    x = torch.randn(shape, requires_grad=True)
    torch.manual_seed(0)
    blocks = {
        "Pre-LN": PreLNBlock(d_model, 8, width, 0.0),
        "Post-LN": PostLNBlock(d_model, 8, width, 0.0),
        "Peri-LN": PeriLNBlock(d_model, 8, width, 0.0),
        "DeepNorm": DeepNormBlock(d_model, 8, width, 0.0, num_layers=6),
        "Pre-LN, qk_norm l2": PreLNBlock(d_model, 8, width, 0.0, qk_norm="l2"),
        "Pre-LN, qk_norm layer_norm": PreLNBlock(d_model, 8, width, 0.0, qk_norm="layer_norm"),
    }
    ways = {name: forward_backward(block, x, block) for name, block in blocks.items()}
    saved = {
        name: kept_bytes(partial(block, x), x, *block.parameters())
        for name, block in blocks.items()
    }
    return [report("kinds of block", shape, "forward+backward", threads, ways, rounds, saved)]


def measure_model(rounds: int, threads: int) -> list[dict[str, Any]]:
    """Time a training step of the small language model, without an optimizer."""
    torch.manual_seed(0)
    model = CausalLanguageModel(64, 64, 64, 4, 6, dim_feedforward=256, dropout=0.0)
    tokens = torch.randint(64, (8, 64))
    parameters = list(model.parameters())

    def step() -> None:
        scores = model(tokens).flatten(0, 1)
        loss = nn.functional.cross_entropy(scores, tokens.flatten())
        torch.autograd.grad(loss, parameters)

    saved = {"lnbook": kept_bytes(lambda: model(tokens), tokens, *parameters)}
    return [
        report(
            "language model, 6 layers",
            (8, 64, 64),
            "forward+backward",
            threads,
            {"lnbook": step},
            rounds,
            saved,
        )
    ]


def report(
    title: str,
    shape: tuple[int, ...],
    direction: str,
    threads: int,
    ways: dict[str, Callable[[], Any]],
    rounds: int,
    saved: dict[str, int],
) -> dict[str, Any]:
    """Time the implementations, print the table and return the measurement for the record."""
    timings = timing.compare(ways, rounds)
    print(f"\n{title}, {shape}, {direction}, threads: {threads}")
    print(timing.table(timings))
    if direction != "forward":
        print(
            "  saved for backward: " + ", ".join(f"{n} {b / 1e6:.1f} MB" for n, b in saved.items())
        )
    return {
        "what": title,
        "shape": list(shape),
        "dtype": "float32",
        "direction": direction,
        "threads": threads,
        "timings": timings,
        "saved_bytes": saved if direction != "forward" else {},
    }


def measure() -> list[dict[str, Any]]:
    """Return all times and the saved memory, on one core and on two."""
    found = []
    for threads in (1, 2):
        with timing.threads(threads):
            for compare in (measure_blocks, measure_causal, measure_kinds, measure_model):
                found += compare(ROUNDS, threads)
    return found
