"""Folding: the outputs stay the same; what can't be folded is rejected and stays unchanged."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from lnbook import layers, reference
from lnbook.layers import fold_affine_, fold_centering
from lnbook.transformer import CausalLanguageModel, PreLNBlock

RNG = np.random.default_rng(31)


def randomized(model: nn.Module) -> nn.Module:
    model.double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.from_numpy(RNG.normal(size=tuple(parameter.shape))))
    return model


def numbers(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RNG.normal(1.0, 2.0, size=shape))


@pytest.mark.parametrize(
    "norm",
    [
        nn.LayerNorm(6),
        nn.LayerNorm(6, bias=False),
        nn.LayerNorm(6, elementwise_affine=False),
        nn.RMSNorm(6),
        layers.LayerNorm(6),
        layers.RMSNorm(6),
    ],
    ids=str,
)
@pytest.mark.parametrize("bias", [True, False])
def test_folding_the_affine_keeps_the_outputs(norm: nn.Module, bias: bool) -> None:
    model = randomized(nn.Sequential(copy.deepcopy(norm), nn.Linear(6, 4, bias=bias)))
    before = copy.deepcopy(model)
    x = numbers(5, 6)
    fold_affine_(model, "0", ["1"])
    torch.testing.assert_close(model(x), before(x), rtol=0, atol=1e-12)
    weight, shift = model[0].weight, getattr(model[0], "bias", None)
    assert weight is None or bool((weight == 1).all())
    assert shift is None or bool((shift == 0).all())
    assert (model[1].bias is None) == (not bias and shift is None)


def test_folding_the_affine_gives_the_matrix_of_the_equation() -> None:
    model = randomized(nn.Sequential(nn.LayerNorm(5), nn.Linear(5, 3)))
    w, b, gamma, beta = (
        p.detach().numpy().copy()
        for p in (model[1].weight, model[1].bias, model[0].weight, model[0].bias)
    )
    fold_affine_(model, "0", ["1"])
    np.testing.assert_allclose(model[1].weight.detach(), w @ np.diag(gamma), atol=1e-12)
    np.testing.assert_allclose(model[1].bias.detach(), b + w @ beta, atol=1e-12)


def test_all_readers_are_folded() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm, self.a, self.b = nn.LayerNorm(4), nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = self.norm(x)
            return self.a(y) * self.b(y)

    model = randomized(Two())
    before, x = copy.deepcopy(model), numbers(7, 4)
    fold_affine_(model, "norm", ["a", "b"])
    torch.testing.assert_close(model(x), before(x), rtol=0, atol=1e-11)
    model = copy.deepcopy(before)
    fold_affine_(model, "norm", ["a"])
    assert not torch.allclose(model(x), before(x)), "a linear layer was forgotten"


def test_a_pre_ln_block_folds_its_second_norm() -> None:
    block = randomized(PreLNBlock(4, 2, 8, dropout=0.0))
    before, x = copy.deepcopy(block), numbers(2, 3, 4)
    fold_affine_(block, "norm2", ["linear1"])
    torch.testing.assert_close(block(x), before(x), rtol=0, atol=1e-10)


def tied() -> nn.Module:
    model = CausalLanguageModel(10, 8, 4, 2, 1, dim_feedforward=8)
    model.head.weight = model.token_embedding.weight
    return model


def module_twice() -> nn.Module:
    norm = nn.LayerNorm(4)
    return nn.Sequential(norm, nn.Linear(4, 4), norm, nn.Linear(4, 4))


@pytest.mark.parametrize(
    ("model", "norm", "linears", "error", "message"),
    [
        (tied(), "encoder.norm", ["head"], ValueError, "token_embedding.weight and head.weight"),
        (module_twice(), "0", ["1"], ValueError, "used once, but got the same one at 0 and 2"),
        (nn.Sequential(nn.LayerNorm(4), nn.Linear(3, 4)), "0", ["1"], ValueError, "reads 3"),
        (nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)), "0", [], ValueError, "at least one"),
        (nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)), "0", "1", TypeError, "list of paths"),
        (nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4)), "0", ["1", "1"], None, ""),
        (nn.Sequential(nn.LayerNorm(4), nn.ReLU()), "0", ["1"], TypeError, "but got ReLU"),
        (nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4)), "0", ["1"], TypeError, "BatchNorm1d"),
        (nn.Sequential(nn.LayerNorm((2, 4)), nn.Linear(4, 4)), "0", ["1"], TypeError, "one dim"),
        (nn.Sequential(nn.LayerNorm(4)), "0", ["7"], AttributeError, "7"),
    ],
)
def test_what_cannot_be_folded_is_refused_and_left(
    model: nn.Module, norm: str, linears: object, error: type[Exception] | None, message: str
) -> None:
    if error is None:  # a layer that's named twice must not be folded twice
        before, x = copy.deepcopy(model), torch.randn(3, 4)
        with torch.no_grad():
            model[0].weight.fill_(2.0)
            before[0].weight.fill_(2.0)
        fold_affine_(model, norm, linears)  # type: ignore[arg-type]
        torch.testing.assert_close(model(x), before(x))
        return
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(error, match=message):
        fold_affine_(model, norm, linears)  # type: ignore[arg-type]
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("bias", [True, False])
def test_folding_the_centering_turns_layer_norm_into_rms_norm(bias: bool) -> None:
    w, b = RNG.normal(size=(6, 3)), RNG.normal(size=6) if bias else None
    x, gamma = RNG.normal(size=(4, 3)), RNG.normal(size=6)
    folded, shift = fold_centering(torch.tensor(w), None if b is None else torch.tensor(b))
    assert (shift is None) == (b is None)
    h = x @ w.T + (0 if b is None else b)
    h2 = x @ folded.numpy().T + (0 if shift is None else shift.numpy())
    expected = reference.layer_norm(h, 6, weight=gamma, eps=0.1)
    np.testing.assert_allclose(
        reference.rms_norm(h2, 6, weight=gamma, eps=0.1), expected, atol=1e-12
    )


@pytest.mark.parametrize("beta", [(0.0, 2.0, 0.0), (1.0, 1.0, 1.0), (-1.0, -1.0, -1.0)])
def test_any_shift_is_folded(beta: tuple[float, ...]) -> None:
    model = nn.Sequential(nn.LayerNorm(3), nn.Linear(3, 2)).double()
    with torch.no_grad():
        model[0].bias.copy_(torch.tensor(beta))
    x = torch.tensor([[1.0, 2.0, 6.0], [0.5, -3.0, 4.0]]).double()
    expected = model(x)
    fold_affine_(model, "0", ["1"])
    assert not model[0].bias.any()
    torch.testing.assert_close(model(x), expected)
