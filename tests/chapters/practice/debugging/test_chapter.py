"""What the chapter says about PyTorch is true of the version in use."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from lnbook import layers, reference
from lnbook.debugging import first_nonfinite

RNG = np.random.default_rng(17)
HALF = (torch.float16, torch.bfloat16)
KINDS = (*HALF, torch.float32, torch.float64)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("given", KINDS, ids=str)
def test_which_dtypes_go_together(kind: torch.dtype, given: torch.dtype) -> None:
    x = torch.ones(2, 4, dtype=given)
    for layer in (nn.LayerNorm(4, dtype=kind), layers.LayerNorm(4, dtype=kind)):
        if given == kind or (given in HALF and kind == torch.float32):
            assert layer(x).dtype == given
        else:
            with pytest.raises(RuntimeError):
                layer(x)


def test_autocast_on_a_cpu_leaves_the_norm_alone() -> None:
    norm, x = nn.LayerNorm(4), torch.ones(2, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert nn.Linear(4, 4)(x).dtype == torch.bfloat16
        assert norm(x).dtype == torch.float32
        assert norm(x.bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("kind", HALF, ids=str)
def test_a_norm_in_float32_accepts_16_bit_rows(kind: torch.dtype) -> None:
    norm = nn.LayerNorm(8)
    with torch.no_grad():
        for parameter in norm.parameters():
            parameter.copy_(torch.from_numpy(RNG.normal(size=8)))
    x = torch.from_numpy(RNG.normal(size=(5, 8))).to(kind)
    y = nn.functional.layer_norm(x.float(), (8,), norm.weight, norm.bias, norm.eps).type_as(x)
    assert y.dtype == kind
    weight, bias = (p.detach().double().numpy() for p in norm.parameters())
    right = reference.layer_norm(x.double().numpy(), 8, weight=weight, bias=bias, eps=norm.eps)
    assert np.abs(y.detach().double().numpy() - right).max() < 0.02


@pytest.mark.parametrize(
    ("weight", "bias", "given", "message"),
    [
        ("float16", "float16", "float32", "mixed dtype (CPU): expect parameter to have scalar"),
        ("float32", "float32", "float64", "mixed dtype (CPU): all inputs must share same"),
        ("float16", "float32", "float16", "expected scalar type Half but found Float"),
        ("bfloat16", "float32", "bfloat16", "expected scalar type BFloat16 but found Float"),
    ],
)
def test_who_raises_which_message(weight: str, bias: str, given: str, message: str) -> None:
    w, b, x = (torch.ones(4, dtype=getattr(torch, kind)) for kind in (weight, bias, given))
    with pytest.raises(RuntimeError) as caught:
        F.layer_norm(x, (4,), w, b)
    assert message in str(caught.value)


def test_rms_norm_warns_instead() -> None:
    with pytest.warns(UserWarning, match="Mismatch dtype between input and weight"):
        nn.RMSNorm(4)(torch.ones(2, 4).half())


def test_autocast_does_not_repair_a_converted_norm() -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16), pytest.raises(RuntimeError, match="mixed"):
        nn.LayerNorm(4).half()(torch.ones(2, 4).bfloat16())


def test_the_fused_encoder_layer_returns_nan_where_the_others_return_numbers() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    x, padding = torch.ones(2, 3, 8), torch.tensor([[False] * 3, [True] * 3])
    assert layer(x, src_key_padding_mask=padding).isfinite().all()
    layer.eval()
    with torch.no_grad():
        assert layer(x, src_key_padding_mask=padding)[1].isnan().all()
        # The hooks choose the other path.
        call = lambda: layer(x, src_key_padding_mask=padding)  # noqa: E731
        assert first_nonfinite(layer, call) is None


def test_squares_beyond_float32_give_zeros() -> None:
    row = torch.tensor([-3.0, -1.0, 1.0, 3.0])
    assert (F.layer_norm(1e20 * row, (4,)) == 0).all()


def test_clipping_spreads_nan() -> None:
    weights = [nn.Parameter(torch.ones(2)) for _ in range(2)]
    weights[0].grad, weights[1].grad = torch.tensor([torch.nan, 1.0]), torch.ones(2)
    with pytest.raises(RuntimeError, match="non-finite"):
        nn.utils.clip_grad_norm_(weights, 1.0, error_if_nonfinite=True)
    nn.utils.clip_grad_norm_(weights, 1.0)
    assert weights[1].grad.isnan().all()
