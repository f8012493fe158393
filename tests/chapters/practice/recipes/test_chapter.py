"""What the recipes say about PyTorch and ONNX Runtime is true of the versions in use."""

import io
import logging
import warnings
from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from onnxruntime.transformers.float16 import convert_float_to_float16
from torch import nn

from lnbook import layers, reference

RNG = np.random.default_rng(17)
LARGE = np.array([[-300.0, -100.0, 100.0, 300.0], [-3.0, -1.0, 1.0, 3.0]], dtype=np.float32)


def randomized(module: nn.Module, dtype: torch.dtype = torch.float64) -> nn.Module:
    module.to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.from_numpy(RNG.normal(size=tuple(parameter.shape))))
    return module.eval()


def expected(layer: nn.LayerNorm, x: np.ndarray) -> np.ndarray:
    weight, bias = (p.detach().double().numpy() for p in (layer.weight, layer.bias))
    return reference.layer_norm(x, x.shape[-1], weight=weight, bias=bias, eps=layer.eps)


def test_epsilon_is_not_loaded() -> None:
    old, new = randomized(nn.LayerNorm(8, eps=1e-12)), randomized(nn.LayerNorm(8))
    new.load_state_dict(old.state_dict())
    row = torch.from_numpy(RNG.normal(size=8))
    assert torch.allclose(new(row), old(row), rtol=0, atol=1e-4)
    assert not torch.allclose(new(row / 100), old(row / 100), rtol=0, atol=1e-2)
    new.eps = 1e-12
    assert torch.equal(new(row / 100), old(row / 100))


@pytest.fixture(scope="module")
def exported() -> tuple[nn.LayerNorm, dict[int, onnx.ModelProto]]:
    layer = randomized(nn.LayerNorm(4), torch.float32)
    given = (torch.from_numpy(LARGE),)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both exporters give warnings of their own
        torch.onnx.export(layer, given, file, dynamo=False, opset_version=11)
        program = torch.onnx.export(layer, given, dynamo=True, opset_version=18, verbose=False)
    return layer, {11: onnx.load_from_string(file.getvalue()), 18: program.model_proto}


def run(model: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: x})[0]


@pytest.mark.parametrize("opset", [11, 18])
def test_exported_norms_agree_with_the_reference(exported, opset: int) -> None:
    layer, models = exported
    nodes = [node.op_type for node in models[opset].graph.node]
    assert (nodes == ["LayerNormalization"]) == (opset == 18)
    assert ("Pow" in nodes) == (opset == 11)
    np.testing.assert_allclose(run(models[opset], LARGE), expected(layer, LARGE), atol=1e-6)


def test_a_chain_in_float16_loses_rows_with_large_deviations(exported) -> None:
    layer, models = exported
    chain, whole = (convert_float_to_float16(models[opset]) for opset in (11, 18))
    half, right = LARGE.astype(np.float16), expected(layer, LARGE)
    with np.errstate(over="ignore"):
        literally = ReferenceEvaluator(chain).run(None, {chain.graph.input[0].name: half})[0]
    bias = layer.bias.detach().numpy()
    np.testing.assert_allclose(literally[0], bias, atol=1e-3)
    np.testing.assert_allclose(literally[1], right[1], atol=1e-2)
    (node,) = whole.graph.node
    stash = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}["stash_type"]
    assert stash == onnx.TensorProto.FLOAT
    np.testing.assert_allclose(run(whole, half), right, atol=1e-2)


def step(prepare: Callable[[nn.LayerNorm, torch.optim.Optimizer], None]) -> torch.Tensor:
    """How far gamma has moved from 1 after `prepare` and one AdamW step."""
    layer = nn.LayerNorm(4)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.1, weight_decay=0.1)
    prepare(layer, optimizer)
    optimizer.step()
    return (layer.weight - 1).detach()


def backward(layer: nn.LayerNorm) -> None:
    (layer(torch.arange(4.0)) * torch.arange(4.0)).sum().backward()


def test_frozen_parameters_move_if_they_have_a_gradient_left() -> None:
    def never(layer: nn.LayerNorm, optimizer: torch.optim.Optimizer) -> None:
        layer.requires_grad_(False)

    def old(layer: nn.LayerNorm, optimizer: torch.optim.Optimizer) -> None:
        backward(layer)
        layer.requires_grad_(False)

    def zeros(layer: nn.LayerNorm, optimizer: torch.optim.Optimizer) -> None:
        old(layer, optimizer)
        optimizer.zero_grad(set_to_none=False)

    assert not step(never).any()
    assert step(old).abs().max() > 0.05
    torch.testing.assert_close(step(zeros), torch.full((4,), -0.01))


def test_evaluation_mode_changes_nothing() -> None:
    layer, x = randomized(nn.LayerNorm(4)), torch.from_numpy(RNG.normal(size=(3, 4)))
    assert torch.equal(layer.train()(x), layer.eval()(x))
    layer(x).pow(3).sum().backward()
    assert layer.weight.grad is not None


def test_a_replaced_parameter_is_not_trained() -> None:
    def replace(layer: nn.LayerNorm, optimizer: torch.optim.Optimizer) -> None:
        layer.weight = nn.Parameter(torch.ones(4))
        backward(layer)

    def copy_into(layer: nn.LayerNorm, optimizer: torch.optim.Optimizer) -> None:
        with torch.no_grad():
            layer.weight.copy_(torch.ones(4))
        backward(layer)

    assert not step(replace).any()
    assert step(copy_into).abs().max() > 0.05


def test_group_norm_with_one_group_is_not_layer_norm_2d() -> None:
    norm = randomized(nn.LayerNorm(3))
    x = torch.from_numpy(RNG.normal(size=(2, 3, 4, 5)))
    norm2d, group = layers.LayerNorm2d(3, eps=norm.eps).double(), nn.GroupNorm(1, 3).double()
    norm2d.load_state_dict(norm.state_dict())
    group.load_state_dict(norm.state_dict())
    by_hand = norm(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    assert torch.equal(norm2d(x), by_hand)
    assert not torch.allclose(group(x), by_hand, atol=0.1)
    changed = x.clone()
    changed[0, :, 2, 2] += torch.tensor([1.0, -2.0, 3.0])
    moved = [int(((f(changed) - f(x)).abs().sum(1) > 1e-9).sum()) for f in (norm2d, group)]
    assert moved == [1, 20]
    stored = x.to(memory_format=torch.channels_last).permute(0, 2, 3, 1)
    assert stored.is_contiguous()


def test_padding_reaches_no_token_and_becomes_beta() -> None:
    norm = randomized(nn.LayerNorm(4))
    tokens = torch.from_numpy(RNG.normal(size=(1, 5, 4)))
    tokens[:, 3:] = 0
    other = tokens.clone()
    other[:, 3:] = 1e6 * torch.from_numpy(RNG.normal(size=(1, 2, 4)))
    assert torch.equal(norm(tokens)[:, :3], norm(other)[:, :3])
    assert torch.equal(norm(tokens)[0, 3], norm.bias)
    whole = nn.LayerNorm((5, 4)).double()
    assert not torch.allclose(whole(tokens)[:, :3], whole(other)[:, :3])


def test_state_dicts_load_both_ways_and_old_names_do_not() -> None:
    theirs, ours = randomized(nn.LayerNorm(4)), randomized(layers.LayerNorm(4))
    x = torch.from_numpy(RNG.normal(size=(3, 4)))
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(ours(x), theirs(x))
    back = randomized(nn.LayerNorm(4))
    back.load_state_dict(ours.state_dict())
    assert torch.equal(back(x), theirs(x))
    with pytest.raises(RuntimeError, match=r'Unexpected key\(s\) in state_dict: "bias"'):
        nn.LayerNorm(4, bias=False).load_state_dict(theirs.state_dict())
    fresh = nn.LayerNorm(4).double()
    report = fresh.load_state_dict({"gamma": theirs.weight, "beta": theirs.bias}, strict=False)
    assert report.missing_keys == ["weight", "bias"]
    assert torch.equal(fresh.weight, torch.ones(4, dtype=torch.float64))


@pytest.mark.parametrize("features", [4, 256])
def test_the_runtime_survives_a_large_mean(features: int) -> None:
    layer = randomized(nn.LayerNorm(features), torch.float32)
    deviations = np.stack([np.arange(features) % 4, np.ones(features)]).astype(np.float32)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            layer, (torch.from_numpy(deviations),), dynamo=True, opset_version=18, verbose=False
        )
    for offset in (0.0, 1234.0, 40000.0):
        x = deviations + np.float32(offset)
        right = expected(layer, x.astype(np.float64))
        assert np.abs(run(program.model_proto, x) - right).max() < 1e-4


def test_only_selecting_before_and_after_keeps_nan_in_the_padding_from_spreading() -> None:
    norm = randomized(nn.LayerNorm(4))
    real = torch.tensor([[True], [True], [False]])
    x = torch.where(real, torch.from_numpy(RNG.normal(size=(3, 4))), torch.nan)

    def finite(given: torch.Tensor, select: bool) -> tuple[bool, bool]:
        norm.zero_grad()
        y = norm(given)
        total = (torch.where(real, y, 0.0) if select else y * real).square().sum()
        total.backward()
        return bool(total.isfinite()), bool(norm.weight.grad.isfinite().all())

    assert finite(x, select=False) == (False, False)
    assert finite(x, select=True) == (True, False)
    assert finite(torch.where(real, x, 0.0), select=True) == (True, True)
