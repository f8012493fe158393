"""The exam questions: their format, and the numbers in their solutions, recomputed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from bookbuild.errors import BookError
from bookbuild.labs import exam
from lnbook import reference
from lnbook.transformer import PreLNBlock, TransformerEncoder

FILE = Path(__file__).resolve().parents[2] / "book" / "teach" / "exam.toml"
QUESTIONS = {question.name: question for question in exam.read(FILE, FILE.name)}
Values = dict[str, Any]


def test_there_are_forty_of_five_kinds() -> None:
    assert len(QUESTIONS) == 40
    assert [count for _, count, *_ in exam.overview(QUESTIONS.values())] == [12, 8, 8, 7, 5]


def test_a_solution_is_longer_than_a_word() -> None:
    for question in QUESTIONS.values():
        assert len(question.solution.split()) >= 10, question.name
        assert question.asks.strip().endswith(("?", ".", "`.", "```")), question.name
        assert question.asks.count("$") % 2 == question.solution.count("$") % 2 == 0, question.name


def test_only_one_file_has_the_solutions() -> None:
    without = exam.as_markdown(QUESTIONS.values(), solutions=False)
    solved = exam.as_markdown(QUESTIONS.values(), solutions=True)
    assert without.count("### ") == solved.count("### ") == 40
    for question in QUESTIONS.values():
        assert question.asks in without
        assert question.solution not in without
        assert question.solution in solved


def normalized(row: list[float], eps: float = 0.0) -> np.ndarray:
    return reference.layer_norm(row, len(row), eps=eps)


def normalize_row() -> Values:
    x = [1.0, 3.0, 5.0, 7.0]
    y = reference.layer_norm(x, 4, weight=[1, 1, 2, 2], bias=[0, 1, 0, 1], eps=4.0)
    return {
        "mean": np.mean(x),
        "variance": np.var(x),
        "normalized": normalized(x, 4.0),
        "output": y,
    }


def batch_of_two() -> Values:
    # Normalized by column in NumPy, since PyTorch's batch norm rejects an epsilon of 0.
    x = np.array([[1.0, 7.0], [3.0, 1.0]])
    columns = {name: np.array([normalized(list(column), eps) for column in x.T]).T
               for name, eps in (("without", 0.0), ("with_eps", 16.0))}  # fmt: skip
    checked = functional.batch_norm(torch.tensor(x), None, None, training=True, eps=16.0)
    assert np.allclose(columns["with_eps"], checked)
    return columns


def count_means() -> Values:
    shape = (8, 16, 32, 32)
    sizes = (8 * 32 * 32, 32 * 32, 4 * 32 * 32, 16 * 32 * 32, 16)  # how many entries share a mean
    return {"means": [np.prod(shape) // size for size in sizes]}


def running_statistics() -> Values:
    layer = nn.BatchNorm1d(1, dtype=torch.float64)
    pattern = torch.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], dtype=torch.float64)  # its variance is 2
    means, variances = [], []
    for mean, variance in ((2.0, 4.0), (4.0, 8.0)):
        batch = mean + pattern * (variance / 2) ** 0.5
        assert np.isclose(batch.var(correction=0), variance)
        layer(batch[:, None])
        means.append(layer.running_mean.item())
        variances.append(layer.running_var.item())
    return {"means": means, "variances": variances}


def gradient_of_row() -> Values:
    x = torch.tensor([1.0, 3.0, 5.0, 7.0], dtype=torch.float64, requires_grad=True)
    gamma = torch.ones(4, dtype=torch.float64, requires_grad=True)
    beta = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    y = functional.layer_norm(x, (4,), gamma, beta, 4.0)
    y.backward(torch.tensor([3.0, 0.0, 0.0, 0.0], dtype=torch.float64))
    found = {"dx": x, "dgamma": gamma, "dbeta": beta}
    return {name: one.grad.numpy() for name, one in found.items() if one.grad is not None}


def rms_and_layer_norm() -> Values:
    x = [1.0, -1.0, 3.0, 5.0]
    return {"rms": reference.rms_norm(x, 4, eps=0.0), "layer_norm": normalized(x)}


def ported_epsilon() -> Values:
    def factor(sigma: float) -> float:
        row = [sigma, -sigma]
        return float(normalized(row, 1e-5)[0] / normalized(row, 1e-12)[0])

    return {"small": factor(0.002), "large": factor(1.0)}


def growing_stream() -> Values:
    variance = 1 + 24 * 0.5
    return {"deviation": variance**0.5, "share": (0.5 / variance) ** 0.5}


def two_devices() -> Values:
    first = 1 + 2**0.5 * np.array([-1.0, 1.0, -1.0, 1.0])
    last = 5 + 2.0 * np.array([-1.0, 1.0, -1.0, 1.0])
    row = np.concatenate([first, last])
    return {"mean": row.mean(), "variance": row.var()}


def eigenvalues() -> Values:
    x = torch.tensor([0.0, 0.0, 0.0, 4.0], dtype=torch.float64)  # its variance is 3
    jacobian = torch.autograd.functional.jacobian(
        lambda x: functional.layer_norm(x, (4,), eps=1.0), x
    )
    return {"eigenvalues": torch.linalg.eigvalsh(jacobian).clamp(min=0.0).numpy()}


def parameters() -> Values:
    encoder = TransformerEncoder(PreLNBlock, 12, 768, 12, dim_feedforward=8, device="meta")
    count = sum(
        parameter.numel()
        for module in encoder.modules()
        if "LayerNorm" in type(module).__name__
        for parameter in module.parameters()
    )
    return {"parameters": count, "percent": 100 * count / 124e6}


def sum_of_squares() -> Values:
    x = torch.full((256,), 200.0, dtype=torch.float16)
    total = (x.double() ** 2).sum()
    assert (x * x).isfinite().all()
    assert total.half().isinf()
    return {"square": (x * x)[0].item(), "total": total.item()}


def three_slips() -> Values:
    torch.manual_seed(0)
    x = torch.randn(1000, 1000)
    mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
    right = functional.layer_norm(x, (1000,))
    close = torch.allclose((x - mean) / (std + 1e-5), right, atol=1e-2, rtol=0.0)
    return {"relative": 1 - (999 / 1000) ** 0.5, "correct": close}


def raises(function: Callable[[], object]) -> bool:
    try:
        function()
    except (RuntimeError, ValueError):
        return True
    return False


def wrong_axis() -> Values:
    square = np.arange(36.0).reshape(6, 6) ** 2
    assert np.allclose((square - square.mean(-1))[:, 2], square[:, 2] - square[2].mean())
    wide = np.ones((4, 6))
    return {"raises": raises(lambda: wide - wide.mean(axis=-1))}


def blind_test() -> Values:
    x = torch.randn(4, 8, dtype=torch.float64, requires_grad=True)
    nn.LayerNorm(8, dtype=torch.float64)(x).sum().backward()
    assert x.grad is not None
    return {"largest": round(x.grad.abs().max().item(), 12)}


def images() -> Values:
    layer = nn.LayerNorm(64)
    assert layer(torch.zeros(8, 64, 64, 64)).shape == (8, 64, 64, 64)
    x = torch.randn(2, 64, 8, 8)
    assert layer(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2).shape == x.shape
    return {"raises": raises(lambda: layer(torch.zeros(8, 64, 32, 32)))}


def half_precision() -> Values:
    x = torch.tensor([400.0, -400.0, 401.0, -401.0], dtype=torch.float16)
    squares = x * x
    assert not (x / torch.sqrt(squares.mean())).any()
    return {"square_is_infinite": bool(squares.isinf().all())}


COMPUTED: dict[str, Callable[[], Values]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        normalize_row, batch_of_two, count_means, running_statistics, gradient_of_row,
        rms_and_layer_norm, ported_epsilon, growing_stream, two_devices, eigenvalues, parameters,
        sum_of_squares, three_slips, wrong_axis, blind_test, images, half_precision,
    )
}  # fmt: skip


def test_every_number_is_computed() -> None:
    assert set(COMPUTED) == {name for name, question in QUESTIONS.items() if question.values}
    assert {name for name, one in QUESTIONS.items() if one.kind == "by hand"} <= set(COMPUTED)


@pytest.mark.parametrize("name", COMPUTED)
def test_the_numbers_of_a_solution(name: str) -> None:
    given, found = QUESTIONS[name].values, COMPUTED[name]()
    assert given.keys() == found.keys()
    for key, value in found.items():
        np.testing.assert_allclose(given[key], value, rtol=1e-6, atol=1e-8, err_msg=key)


# Format

GOOD = """
[[questions]]
name = 'a'
kind = 'derive'
points = 1
minutes = 2
asks = 'x'
solution = 'y'
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD.replace("'y'", "' '"), "missing .'solution'."),
        (GOOD.replace("derive", "guess"), "unknown kind"),
        (GOOD.replace("points = 1", "points = 0"), "have to be positive"),
        (GOOD + GOOD, "occurs twice"),
    ],
)
def test_a_malformed_question(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "exam.toml"
    path.write_text(text)
    with pytest.raises(BookError, match=message):
        exam.read(path, "exam.toml")
