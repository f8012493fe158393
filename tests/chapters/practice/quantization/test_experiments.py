"""The chapter's experiments."""

import copy

import numpy as np
import pytest
import torch

from lnbook.chapters.practice.quantization import experiments
from lnbook.chapters.shared.language_model import build

TOKENS = torch.from_numpy(np.random.default_rng(3).integers(0, 11, size=(3, 6)))


@pytest.fixture
def model():
    """A model with random gains, shifts and biases."""
    rng = np.random.default_rng(0)
    model = build(11, rng, layers=2, width=8, heads=2, length=6)
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.from_numpy(rng.normal(size=tuple(parameter.shape)))
    return model


def test_quantize_rounds_to_the_grid_of_each_slice() -> None:
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 7)))
    for axis, bits in ((None, 8), (-1, 8), (0, 4)):
        steps = 2 ** (bits - 1) - 1
        largest = np.abs(x.numpy()).max(axis=axis, keepdims=axis is not None)
        expected = np.rint(x.numpy() / (largest / steps)) * (largest / steps)
        found = experiments.quantize(x, axis=axis, bits=bits).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert np.abs(found - x.numpy()).max() <= (largest / steps / 2 * (1 + 1e-9)).max()
    assert not experiments.quantize(torch.zeros(3)).any()


def test_the_versions_are_the_same_function(model) -> None:
    expected = model(TOKENS)
    before = copy.deepcopy(model.state_dict())
    found = experiments.versions(model, TOKENS, np.random.default_rng(5))
    for name, version in found.items():
        torch.testing.assert_close(version(TOKENS), expected, rtol=0, atol=1e-10, msg=name)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])
    weights = {name: experiments.readers(m)[0][1].sum().item() for name, m in found.items()}
    weights.pop("planted, smoothed")  # its weights equal those of "smoothed": see the next test
    assert len({round(weight, 9) for weight in weights.values()}) == len(weights)


def test_smoothing_by_half_undoes_a_planted_outlier(model) -> None:
    found = experiments.versions(model, TOKENS, np.random.default_rng(5))
    for one, other in zip(
        found["smoothed"].parameters(), found["planted, smoothed"].parameters(), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_a_rotation_needs_the_mean_to_be_folded(model) -> None:
    q = experiments.random_rotation(8, np.random.default_rng(2))
    wrong = experiments.rotate_(experiments.fold_(copy.deepcopy(model)), q)
    assert (wrong(TOKENS) - model(TOKENS)).abs().max() > 1e-3


def test_rotations_change_the_stream_by_the_rotation(model) -> None:
    rms = experiments.to_rms(model)
    q = experiments.random_rotation(8, np.random.default_rng(2))
    turned = experiments.rotate_(copy.deepcopy(rms), q)
    for place in ("input", "normalized", "output"):
        for one, other in zip(
            experiments.norm_tensors(turned, TOKENS)[place],
            experiments.norm_tensors(rms, TOKENS)[place],
            strict=True,
        ):
            torch.testing.assert_close(one, other @ q)
    assert torch.det(q).abs().item() == pytest.approx(1)


def test_principal_axes_are_sorted_by_size() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(50, 4)))
    rows = rows * torch.tensor([1.0, 5.0, 2.0, 0.5])
    q = experiments.principal_basis(rows)
    gram = (rows @ q).T @ (rows @ q)
    sizes = torch.diag(gram)
    torch.testing.assert_close(gram, torch.diag(sizes))
    assert (sizes[:-1] > sizes[1:]).all()


def test_norm_tensors_are_what_the_norms_compute(model) -> None:
    tensors = experiments.norm_tensors(model, TOKENS)
    for (norm, _, _), x, xhat, y in zip(experiments.readers(model), *tensors.values(), strict=True):
        expected = torch.nn.functional.layer_norm(x, (8,), eps=norm.eps)
        torch.testing.assert_close(xhat, expected)
        torch.testing.assert_close(y, norm(x))


def test_only_what_is_asked_for_is_quantized(model) -> None:
    off = {"outputs": False, "inputs": False, "weights": False}
    with experiments.quantized(model, **off) as copied:
        assert torch.equal(copied(TOKENS), model(TOKENS))
    results = []
    for name in off:
        with experiments.quantized(model, bits=4, **off | {name: True}) as coarse:
            results.append(coarse(TOKENS))
    assert all((result - model(TOKENS)).abs().max() > 1e-3 for result in results)
    assert not torch.allclose(results[0], results[1])
    with experiments.quantized(model, outputs=True, weights=False, fine=True) as coarse:
        y = experiments.norm_tensors(coarse, TOKENS)["input"][0]
        norm = model.encoder.layers[0].norm1
        expected = experiments.quantize(norm(y), axis=-1)
        found = coarse.encoder.layers[0].norm1(y)
    torch.testing.assert_close(found, expected)


def test_rounded_statistics_normalize_exact_rows(model) -> None:
    norm = model.encoder.layers[0].norm1
    x = 3 * torch.from_numpy(np.random.default_rng(4).normal(size=(5, 8))) + 1
    rounded = experiments.quantize(x, bits=4)
    variance = rounded.var(1, correction=0, keepdim=True) + norm.eps
    expected = (x - rounded.mean(1, keepdim=True)) / variance.sqrt() * norm.weight + norm.bias
    only = {"outputs": False, "weights": False, "statistics": True}
    with experiments.quantized(model, bits=4, **only) as coarse:
        found = coarse.encoder.layers[0].norm1(x)
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, norm(x), atol=1e-3)
    assert not torch.allclose(found, norm(rounded), atol=1e-3)


@torch.no_grad()
def test_the_product_error_is_relative_to_the_whole_output(model) -> None:
    outputs = experiments.norm_tensors(model, TOKENS)["output"]
    errors = []
    for y, (_, weight, bias) in zip(outputs, experiments.readers(model), strict=True):
        rounded = experiments.quantize(y, axis=1) @ experiments.quantize(weight, axis=1).T + bias
        exact = torch.nn.functional.linear(y, weight, bias)
        errors.append(float((rounded - exact).norm() / exact.norm()))
    found = experiments.product_error(model, TOKENS, fine=True)
    assert found == pytest.approx(np.mean(errors))
    assert found < experiments.product_error(model, TOKENS, fine=True, bits=4)


def test_crest_and_features() -> None:
    x = torch.tensor([[3.0, 4.0, 0.0], [3.0, -4.0, 0.0]])
    assert experiments.crest(x) == pytest.approx(4 / np.sqrt(50 / 6))
    np.testing.assert_allclose(experiments.largest_features(x), [4 / 3, 1.0, 0.0])


def test_norms_run_in_floating_point_in_onnx_runtime() -> None:
    dynamic = experiments.onnx_operations(static=False)
    static = experiments.onnx_operations(static=True)
    assert dynamic[0] == static[4] == "LayerNormalization"
    assert "DequantizeLinear" in static[:4]
