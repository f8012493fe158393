"""`first_nonfinite` names the module, the location and the tensor that come first."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from lnbook.debugging import NonFinite, first_nonfinite

INF, NAN = float("inf"), float("nan")
X = torch.tensor([[1.0, -2.0, 0.5, 3.0], [0.0, 1.0, 2.0, -1.0]])


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))


def found(model: nn.Module, x: Any = X, backward: bool = False) -> tuple[str, str, str] | None:
    report = first_nonfinite(model, lambda: model(x).sum().backward() if backward else model(x))
    return None if report is None else (report.module, report.place, report.name)


class Formula(nn.Module):
    """A module that wraps a function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, rows: Tensor) -> Tensor:
        result: Tensor = self.function(rows)
        return result


class Residual(nn.Module):
    """Normalizes a sum that's computed in `forward`, outside any submodule."""

    def __init__(self) -> None:
        super().__init__()
        self.branch, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(x + self.branch(x))
        return y


def test_a_healthy_model_has_nothing_to_report() -> None:
    assert found(network()) is None
    assert found(network(), backward=True) is None


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_a_parameter_is_found_before_the_step(value: float) -> None:
    model = network()
    with torch.no_grad():
        model[1].weight[2] = value
    assert found(model) == ("1", "parameter", "weight")
    report = first_nonfinite(model, lambda: None)  # the model isn't even called
    assert report is not None
    assert (report.nan, report.inf) == ((1, 0) if value != value else (0, 1))


def test_buffers_may_contain_infinities_but_not_nan() -> None:
    model = nn.BatchNorm1d(4).eval()
    assert isinstance(model.running_mean, Tensor)
    model.register_buffer("mask", torch.tensor([0.0, -INF, INF]))
    assert found(model) is None
    model.running_mean[1] = NAN
    assert found(model) == ("", "buffer", "running_mean")


def test_the_data() -> None:
    assert found(network(), X / torch.zeros(4)) == ("", "input", "input")


@pytest.mark.parametrize("value", [NAN, INF, -INF])
def test_an_output_belongs_to_the_innermost_module(value: float) -> None:
    bad = Formula(lambda x: torch.where(x == 3.0, value, x))
    model = nn.Sequential(nn.Identity(), nn.Sequential(nn.Identity(), bad), nn.LayerNorm(4))
    report = first_nonfinite(model, lambda: model(X))
    expected = NonFinite(
        module="1.1",
        kind="Formula",
        place="output",
        name="",
        nan=int(value != value),
        inf=int(value == value),
        shape=(2, 4),
        dtype=torch.float32,
        before="1.0",
    )
    assert report == expected


def test_a_sum_between_modules_is_found_as_the_input_of_the_next() -> None:
    model = Residual().half()
    with torch.no_grad():
        model.branch.weight.copy_(torch.eye(4))
        model.branch.bias.zero_()
    report = first_nonfinite(model, lambda: model((X * 20_000).half()))  # 80,000 overflows
    assert report is not None
    assert (report.module, report.place, report.name) == ("norm", "input", "input")
    assert (report.before, report.dtype, report.inf) == ("branch", torch.float16, 3)


def test_only_the_first_is_reported() -> None:
    model = network()
    broken = nn.Sequential(Formula(lambda x: x / 0), *model)
    with torch.no_grad():
        assert found(broken) == ("0", "output", "")
        model[2].bias[0] = NAN  # parameters are checked first, even in the last module
        assert found(broken) == ("3", "parameter", "bias")


def test_the_gradient_of_an_input_belongs_to_the_module_that_computed_it() -> None:
    def outside(x: Tensor) -> Tensor:  # epsilon outside the square root: an infinite slope at 0
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True).sqrt() + 1e-5)

    model = nn.Sequential(nn.Linear(4, 4), Formula(outside), nn.Linear(4, 2))
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(1.0)
    assert found(model) is None
    assert found(model, backward=True) == ("1", "gradient of an input", "rows")
    nested = nn.Sequential(nn.Sequential(model[0]), nn.Sequential(model[1], model[2]))
    assert found(nested, backward=True) == ("1.0", "gradient of an input", "rows")


def test_the_gradient_of_an_output_comes_from_outside() -> None:
    model = network()
    report = first_nonfinite(model, lambda: (model(X) * torch.tensor(3e38) * 10).sum().backward())
    assert report is not None
    assert (report.module, report.place, report.inf) == ("2", "gradient of an output", 4)
    assert report.before is None


def test_the_gradient_of_a_parameter() -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gain = nn.Parameter(torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.gain.abs().sqrt()

    assert found(nn.Sequential(Scale()), backward=True) == ("0", "gradient of a parameter", "gain")


def test_the_result_is_checked_last() -> None:
    model = network()
    report = first_nonfinite(model, lambda: {"loss": [model(X).sum(), torch.tensor(NAN)]})
    assert report is not None
    assert (report.module, report.place, report.nan) == ("", "result", 1)
    assert first_nonfinite(model, lambda: (3.0, "text", torch.tensor(7), None)) is None


def test_masks_may_be_minus_infinity() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    model = nn.TransformerEncoder(layer, 2)
    mask = nn.Transformer.generate_square_subsequent_mask(3)
    x = torch.ones(1, 3, 4)
    assert mask.isneginf().any()
    assert first_nonfinite(model, lambda: model(x, mask=mask).sum().backward()) is None
    bad = mask.masked_fill(mask == 0, NAN)
    report = first_nonfinite(model, lambda: model(x, mask=bad))
    assert report is not None
    assert (report.module, report.place, report.name) == ("", "input", "mask")


def test_arguments_are_named_even_without_a_signature() -> None:
    class Anything(nn.Module):
        def forward(self, *args: Any, **kwargs: Any) -> Tensor:
            return torch.ones(1)

    model = Anything()
    for call, name in (
        (lambda: model(X, X / 0), "args"),
        (lambda: model(x=X, y=X / 0), "y"),
        (lambda: model({"ids": X / 0}), "args"),
    ):
        report = first_nonfinite(model, call)
        assert report is not None
        assert (report.place, report.name) == ("input", name)


def test_tensors_in_tuples_and_mappings_are_found() -> None:
    class Several(nn.Module):
        def forward(self, x: Tensor) -> dict[str, Any]:
            return {"a": (x, [x, x / 0]), "b": "text"}

    assert found(Several()) == ("", "output", "")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_dtypes(dtype: torch.dtype) -> None:
    model = Formula(lambda x: x.to(dtype) * INF)
    report = first_nonfinite(model, lambda: model(X))
    assert report is not None
    assert report.dtype == dtype


def test_tensors_without_finite_numbers_to_check_are_skipped() -> None:
    for x in (torch.tensor([1, 2]), torch.tensor([True]), torch.empty(3, device="meta")):
        assert found(nn.Identity(), x) is None
    assert found(nn.Identity(), torch.eye(3).to_sparse()) is None
    if torch.backends.mkldnn.is_available():
        assert found(nn.Identity(), torch.eye(3).to_mkldnn()) is None


def hooks(model: nn.Module) -> int:
    modules = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    return modules + sum(len(p._backward_hooks or ()) for p in model.parameters())


def test_all_hooks_are_gone_afterward_and_nothing_changes() -> None:
    model = network()
    expected = network()
    expected(X).sum().backward()
    assert found(model, backward=True) is None
    assert hooks(model) == 0
    for p, q in zip(model.parameters(), expected.parameters(), strict=True):
        assert p.grad is not None
        assert q.grad is not None
        assert torch.equal(p.grad, q.grad)


def test_inplace_operations_are_fine() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
    assert found(model, backward=True) is None


def test_an_error_of_the_step_passes_with_a_note() -> None:
    model = network()

    def step() -> None:
        model(X / 0)
        raise KeyError("later")

    with pytest.raises(KeyError, match="later") as caught:
        first_nonfinite(model, step)
    (note,) = caught.value.__notes__
    assert "Sequential" in note
    assert "input 'input'" in note
    assert hooks(model) == 0
    with pytest.raises(RuntimeError) as caught_early:  # a wrong shape, and nothing nonfinite
        first_nonfinite(model, lambda: model(torch.ones(3)))
    assert not hasattr(caught_early.value, "__notes__")
    assert hooks(model) == 0


def test_a_report_is_one_sentence() -> None:
    report = NonFinite("a.norm", "LayerNorm", "input", "x", 1, 2, (3, 4), torch.float16, "a.linear")
    assert str(report) == (
        "a.norm (LayerNorm): input 'x' has 1 nan and 2 inf, shape (3, 4), float16; "
        "last finite output: a.linear"
    )
    model = NonFinite("", "Model", "result", "", 1, 0, (), torch.float32, None)
    assert str(model) == "the model (Model): result has 1 nan and 0 inf, shape (), float32"
