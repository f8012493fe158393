"""What the chapter says about PyTorch is true of the version in use."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from lnbook import layers, reference
from lnbook.debugging import first_nonfinite
from lnbook.transformer import PreLNBlock

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
        # With hooks, PyTorch takes the other code path.
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


def test_a_tiny_epsilon_is_too_small_for_a_float16_gradient() -> None:
    for kind in (torch.float16, torch.float32):  # the parameters' dtype
        for eps, finite in ((1e-12, False), (1e-5, True)):
            x = torch.zeros(1, 4, dtype=torch.float16, requires_grad=True)
            y = nn.LayerNorm(4, eps=eps, dtype=kind)(x)
            (y * torch.tensor([1.0, 2.0, 3.0, 5.0]).half()).sum().backward()
            assert y.isfinite().all()
            assert x.grad is not None
            assert bool(x.grad.isfinite().all()) == finite


def test_a_report_in_the_exercise_is_what_an_overflowing_block_gives() -> None:
    blocks = [PreLNBlock(8, 2, 16, dropout=0.0) for _ in range(4)]
    stack = nn.Sequential(*blocks).half().eval()
    with torch.no_grad():
        blocks[3].self_attn.out_proj.bias[:2] = 60_000
    x = torch.zeros(4, 6, 8).half()
    x[0, 0, :2] = 20_000
    assert str(first_nonfinite(stack, lambda: stack(x))) == (
        "3.norm2 (LayerNorm): input 'input' has 0 nan and 2 inf, shape (4, 6, 8), float16; "
        "last finite output: 3.dropout1"
    )


def test_a_report_in_the_exercise_is_what_a_padded_sequence_gives() -> None:
    norm, attention = nn.LayerNorm(8), nn.MultiheadAttention(8, 2, batch_first=True)
    model = nn.ModuleDict({"norm1": norm, "attention": attention})
    padding = torch.tensor([[False] * 6, [True] * 6, [False] * 6, [False] * 6])

    def step() -> None:
        h = norm(torch.ones(4, 6, 8))
        attention(h, h, h, key_padding_mask=padding)

    assert str(first_nonfinite(model, step)) == (
        "attention (MultiheadAttention): output has 48 nan and 0 inf, shape (4, 6, 8), float32; "
        "last finite output: norm1"
    )
