"""The chapter's experiments."""

import numpy as np
import onnx
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from lnbook import reference
from lnbook.chapters.practice.debugging import experiments
from lnbook.debugging import first_nonfinite

U = 2.0**-24


def rows(seed: int, offset: float = 0.0, size: int = 96) -> torch.Tensor:
    values = offset + np.random.default_rng(seed).normal(size=(50, size))
    return torch.tensor(values, dtype=torch.float32)


def test_the_stack_grows_out_of_float16_but_not_out_of_bfloat16() -> None:
    stack = experiments.growing_stack(np.random.default_rng(0))
    x = rows(1, size=32)[None]
    with torch.no_grad():
        assert first_nonfinite(stack, lambda: stack(x)) is None
        stack.bfloat16()
        assert first_nonfinite(stack, lambda: stack(x.bfloat16())) is None
        stack.half()
        assert first_nonfinite(stack, lambda: stack(x.half())) is not None


@pytest.mark.parametrize("order", experiments.ORDERS)
def test_orders_add_everything_once(order: str) -> None:
    x = np.arange(48, dtype=np.float32).reshape(1, 48) ** 2
    assert experiments.ORDERS[order](x) == x.sum()
    assert experiments.ORDERS[order](np.ones((2, 48), np.float32)).tolist() == [48.0, 48.0]


def test_sums_in_pairs_of_odd_length() -> None:
    for n in (1, 3, 7, 12):
        assert experiments.ORDERS["pairs"](np.ones((1, n), np.float32)) == n


def test_rounding_errors_are_within_the_bounds() -> None:
    lengths = np.array([16, 256, 4096])
    errors = experiments.sum_errors(lengths, 50, np.random.default_rng(0))
    assert (errors["one by one"] <= lengths).all()
    assert (errors["16 lanes"] <= lengths / 16 + 4).all()
    assert (errors["pairs"] <= np.log2(lengths)).all()
    assert errors["one by one"][-1] > errors["pairs"][-1]


@pytest.mark.parametrize("order", experiments.ORDERS)
def test_layer_norm_in_order(order: str) -> None:
    x = rows(2, offset=3.0)
    y = experiments.layer_norm_in_order(x, order)
    assert y.dtype == torch.float32
    np.testing.assert_allclose(y, reference.layer_norm(x.numpy(), 96), atol=1e-5)
    unbiased = experiments.layer_norm_in_order(x, order, eps=0.0, ddof=1)
    torch.testing.assert_close(unbiased, (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True))


@pytest.mark.parametrize("offset", [0.0, 10.0, 1000.0])
@pytest.mark.parametrize("eps", [1e-5, 0.1])
def test_right_results_are_within_the_tolerances(offset: float, eps: float) -> None:
    x = rows(3, offset)
    exact = F.layer_norm(x.double(), (96,), eps=eps)
    atol, rtol = experiments.tolerances(x, eps)
    for order in experiments.ORDERS:
        y = experiments.layer_norm_in_order(x, order, eps)
        assert torch.allclose(y.double(), exact, atol=atol, rtol=rtol)
        assert torch.allclose(y, F.layer_norm(x, (96,), eps=eps), atol=atol, rtol=rtol)


@pytest.mark.parametrize("mistake", [{"ddof": 1}, {"eps": 1e-3}, {"eps": 0.0}])
def test_wrong_results_are_not(mistake: dict[str, float]) -> None:
    x = 0.1 * rows(4)
    atol, rtol = experiments.tolerances(x, steps=96**0.5)
    y = experiments.layer_norm_in_order(x, "pairs", **mistake)  # type: ignore[arg-type]
    assert not torch.allclose(y, F.layer_norm(x, (96,)), atol=atol, rtol=rtol)


def test_the_tolerances_are_those_of_the_formula() -> None:
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [-1.0, 1.0, -1.0, 1.0]])
    atol, rtol = experiments.tolerances(x, eps=0.5)
    assert atol == pytest.approx(2 * 4 * U * 3 / np.sqrt(3.5 + 0.5))
    assert rtol == pytest.approx(2 * (8 * U + U))
    _, half = experiments.tolerances(x, dtype=torch.bfloat16, steps=2)
    assert half == pytest.approx(2 * (7 * U + 2.0**-8))
    assert experiments.tolerances(x.double())[0] < 1e-14


def test_half_constants() -> None:
    eps = onnx.numpy_helper.from_array(np.float32(1e-12), "eps")
    two = onnx.numpy_helper.from_array(np.float32(2.0), "value")
    count = onnx.numpy_helper.from_array(np.array(7), "count")
    a, b = (onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "ab")
    nodes = [
        onnx.helper.make_node("Constant", [], ["c"], value=two),
        onnx.helper.make_node("Mul", ["a", "c"], ["d"]),
        onnx.helper.make_node("Add", ["d", "eps"], ["b"]),
    ]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [a], [b], [eps, count]))
    half = experiments.half_constants(model)
    onnx.checker.check_model(half)
    kinds = [t.data_type for t in half.graph.initializer]
    assert kinds == [onnx.TensorProto.FLOAT16, onnx.TensorProto.INT64]
    assert onnx.numpy_helper.to_array(half.graph.initializer[0]) == 0
    assert onnx.numpy_helper.to_array(half.graph.node[0].attribute[0].t) == np.float16(2)
    for value in (*half.graph.input, *half.graph.output):
        assert value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16
    assert model.graph.initializer[0].data_type == onnx.TensorProto.FLOAT  # only a copy was changed
