"""Simulated int8 around the norms of a language model, and changes that preserve its outputs.

Numbers are rounded to the int8 grid and multiplied as floating-point numbers. That gives the same
results as integer arithmetic, up to the rounding of sums, on any processor.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lnbook.chapters.shared import language_model
from lnbook.layers import LayerNorm, RMSNorm, fold_centering
from lnbook.transformer import CausalLanguageModel

__all__ = [
    "crest",
    "fold_",
    "largest_features",
    "norm_tensors",
    "onnx_operations",
    "plant_",
    "principal_basis",
    "product_error",
    "quantize",
    "quantized",
    "random_rotation",
    "readers",
    "rotate_",
    "smooth_",
    "test_loss",
    "to_rms",
    "versions",
]

Array = NDArray[np.float64]

PLACES = ("input", "normalized", "output")
PLANTED, FACTOR = 0, 20.0  # the feature and the factor of a planted outlier


def quantize(x: Tensor, *, axis: int | None = None, bits: int = 8) -> Tensor:
    r"""Round to a symmetric grid of integers, and return the result as floating-point numbers.

    .. math::
        q = \operatorname{round}(x / s), \qquad s = \frac{\max |x|}{2^{b-1} - 1}, \qquad
        \hat{x} = s\, q

    Args:
        x: what to round.
        axis: the axis over which the maximum is taken, so that every slice along the other axes
            has its own scale; None for one scale for the whole tensor.
        bits: how many bits an integer has.

    Example:
        >>> quantize(torch.tensor([1.0, 0.2, -127.0, 0.7]))
        tensor([   1.,    0., -127.,    1.])
    """
    largest = x.abs().amax() if axis is None else x.abs().amax(axis, keepdim=True)
    scale = largest.clamp_min(torch.finfo(x.dtype).tiny) / (2 ** (bits - 1) - 1)
    rounded: Tensor = (x / scale).round() * scale
    return rounded


def crest(x: Tensor) -> float:
    """Return the largest absolute value, divided by the root mean square.

    Example:
        >>> crest(torch.tensor([1.0, -1.0, 1.0, 1.0]))
        1.0
    """
    x = x.detach()
    return float(x.abs().max() / x.square().mean().sqrt())


def largest_features(x: Tensor) -> Array:
    """Return each feature's root mean square, the largest first, divided by their median.

    Args:
        x: rows of shape `(N, D)`.

    Example:
        >>> largest_features(torch.tensor([[1.0, -2.0, 8.0], [1.0, 2.0, -8.0]])).tolist()
        [4.0, 1.0, 0.5]
    """
    sizes = x.detach().double().square().mean(0).sqrt().numpy()
    return np.asarray(np.sort(sizes)[::-1] / np.median(sizes))


def _norms(model: CausalLanguageModel) -> list[tuple[nn.Module, list[nn.Module]]]:
    """Return each norm with the modules that read its output."""
    assert model.encoder.norm is not None
    pairs: list[tuple[nn.Module, list[nn.Module]]] = []
    for layer in model.encoder.layers:
        pairs.append((layer.get_submodule("norm1"), [layer.get_submodule("self_attn")]))
        pairs.append((layer.get_submodule("norm2"), [layer.get_submodule("linear1")]))
    return [*pairs, (model.encoder.norm, [model.head])]


def readers(model: CausalLanguageModel) -> list[tuple[nn.Module, nn.Parameter, nn.Parameter]]:
    """Return each norm of a Pre-LN model, with the matrix and bias of the layer reading its output.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=2, width=8, heads=2)
        >>> [tuple(weight.shape) for _, weight, _ in readers(model)]
        [(24, 8), (32, 8), (24, 8), (32, 8), (9, 8)]
    """
    found = []
    for norm, (reader,) in _norms(model):
        prefix = "in_proj_" if hasattr(reader, "in_proj_weight") else ""
        weight, bias = (reader.get_parameter(f"{prefix}{name}") for name in ("weight", "bias"))
        found.append((norm, weight, bias))
    return found


def _writers(model: CausalLanguageModel) -> list[nn.Linear]:
    """Return the linear layers that add to the residual stream."""
    layers = model.encoder.layers
    names = ("self_attn.out_proj", "linear2")
    found = [layer.get_submodule(name) for layer in layers for name in names]
    assert all(isinstance(linear, nn.Linear) for linear in found)
    return found  # type: ignore[return-value]


@torch.no_grad()
def fold_(model: CausalLanguageModel) -> CausalLanguageModel:
    r"""Move every norm's gamma and beta into the matrix that reads it, in place.

    .. math::
        W (\gamma \odot \hat{x} + \beta) + b = (W \operatorname{diag} \gamma)\, \hat{x}
        + (b + W \beta)

    Returns:
        `model`.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> _ = model.encoder.norm.weight.data.fill_(3.0)
        >>> fold_(model).encoder.norm.weight.unique().tolist()
        [1.0]
    """
    for norm, weight, bias in readers(model):
        gamma, beta = norm.weight, getattr(norm, "bias", None)
        assert isinstance(gamma, Tensor)
        if isinstance(beta, Tensor):
            bias.add_(weight @ beta)
            beta.zero_()
        weight.mul_(gamma)
        gamma.fill_(1.0)
    return model


@torch.no_grad()
def smooth_(model: CausalLanguageModel, x: Tensor, alpha: float = 0.5) -> CausalLanguageModel:
    r"""Divide each norm's output by a factor per feature, and move that factor into its reader.

    .. math::
        s_i = \frac{(\max |y_i|)^\alpha}{(\max_j |W_{ji}|)^{1 - \alpha}}

    Source: Xiao et al. 2023, equation 4.

    Args:
        model: a Pre-LN model with LayerNorms; changed in place.
        x: the characters used to measure the largest outputs, shape `(N, L)`.
        alpha: where the differences between features end up: all in the weights with 1, all in the
            norms' outputs with 0.

    Returns:
        `model`.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> x = torch.tensor([[1, 2, 3]])
        >>> before = model(x)
        >>> torch.allclose(smooth_(model, x)(x), before)
        True
    """
    outputs = norm_tensors(model, x)["output"]
    for (norm, weight, _), y in zip(readers(model), outputs, strict=True):
        factor = y.abs().amax(0) ** alpha / weight.abs().amax(0) ** (1.0 - alpha)
        weight.mul_(factor)
        for parameter in norm.parameters():
            parameter.div_(factor)
    return model


@torch.no_grad()
def plant_(model: CausalLanguageModel, factor: float = FACTOR) -> CausalLanguageModel:
    """Make one feature of every norm's output larger, and the weights that read it smaller.

    It changes the model in place, and the model still computes the same function.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> plant_(model, 20.0).encoder.norm.weight.tolist()[:2]
        [20.0, 1.0]
    """
    for norm, weight, _ in readers(model):
        for parameter in norm.parameters():
            parameter[PLANTED] *= factor
        weight[:, PLANTED] /= factor
    return model


@torch.no_grad()
def to_rms(model: CausalLanguageModel) -> CausalLanguageModel:
    """Return an equivalent model with RMSNorms: gamma, beta and the centering are folded away.

    Gamma and beta move into the layers after the norms, and the subtraction of the mean moves into
    everything that writes to the residual stream. Source: Ashkboos et al. 2024 (SliceGPT), section
    3.

    Args:
        model: a Pre-LN model with LayerNorms; it isn't changed.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> x = torch.tensor([[1, 2, 3]])
        >>> torch.allclose(to_rms(model)(x), model(x))
        True
    """
    model = fold_(copy.deepcopy(model))
    for linear in _writers(model):
        weight, bias = fold_centering(linear.weight, linear.bias)
        linear.weight.copy_(weight)
        assert bias is not None
        linear.bias.copy_(bias)
    for embedding in (model.token_embedding, model.position_embedding):
        embedding.weight.sub_(embedding.weight.mean(1, keepdim=True))
    for layer in model.encoder.layers:
        layer.norm1, layer.norm2 = _rms(layer.norm1), _rms(layer.norm2)
    model.encoder.norm = _rms(model.encoder.norm)
    return model


def _rms(norm: Any) -> RMSNorm:
    assert isinstance(norm, LayerNorm)
    weight = norm.get_parameter("weight")
    return RMSNorm(norm.normalized_shape, norm.eps, dtype=weight.dtype)


@torch.no_grad()
def rotate_(model: CausalLanguageModel, rotation: Tensor) -> CausalLanguageModel:
    """Rotate the residual stream: everything that writes to it, and everything that reads it.

    Args:
        model: a model whose RMSNorms have gains of 1, as returned by `to_rms`; changed in place.
        rotation: an orthogonal matrix of shape `(D, D)`. A row x of the stream becomes x Q.

    Returns:
        `model`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> model = to_rms(language_model.build(9, rng, layers=1, width=8, heads=2))
        >>> x = torch.tensor([[1, 2, 3]])
        >>> before = model(x)
        >>> torch.allclose(rotate_(model, random_rotation(8, rng))(x), before)
        True
    """
    rotation = rotation.to(model.head.weight.dtype)
    for embedding in (model.token_embedding, model.position_embedding):
        embedding.weight.copy_(embedding.weight @ rotation)
    for linear in _writers(model):
        linear.weight.copy_(rotation.T @ linear.weight)
        linear.bias.copy_(linear.bias @ rotation)
    for _, weight, _ in readers(model):
        weight.copy_(weight @ rotation)
    return model


def random_rotation(size: int, rng: np.random.Generator) -> Tensor:
    """Return a random orthogonal matrix, in float64.

    Example:
        >>> q = random_rotation(5, np.random.default_rng(0))
        >>> torch.allclose(q @ q.T, torch.eye(5).double())
        True
    """
    q, r = np.linalg.qr(rng.normal(size=(size, size)))
    return torch.from_numpy(q * np.sign(np.diag(r)))


def principal_basis(rows: Tensor) -> Tensor:
    """Return the principal axes of rows as columns, the one with the largest mean square first.

    Args:
        rows: shape `(N, D)`.

    Example:
        >>> principal_basis(torch.tensor([[3.0, 3.0], [-1.0, 1.0]])).abs().round(decimals=3)
        tensor([[0.7070, 0.7070],
                [0.7070, 0.7070]], dtype=torch.float64)
    """
    rows = rows.double()
    axes: Tensor = torch.linalg.eigh(rows.T @ rows).eigenvectors.flip(1)
    return axes


@torch.no_grad()
def norm_tensors(model: CausalLanguageModel, x: Tensor) -> dict[str, list[Tensor]]:
    r"""Return each norm's input, its normalized rows and its output.

    Args:
        model: a Pre-LN model.
        x: characters, of shape `(N, L)`.

    Returns:
        `"input"`, `"normalized"` and `"output"`: for each norm, a tensor of shape `(N * L, D)`.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> tensors = norm_tensors(model, torch.tensor([[1, 2, 3]]))
        >>> [len(found) for found in tensors.values()], tensors["input"][0].shape
        ([3, 3, 3], torch.Size([3, 8]))
    """
    found: dict[str, list[Tensor]] = {place: [] for place in PLACES}

    def look(norm: nn.Module, inputs: tuple[Tensor], output: Tensor) -> None:
        y = output.flatten(0, -2)
        gamma, beta = norm.weight, getattr(norm, "bias", None)
        assert isinstance(gamma, Tensor)
        found["input"].append(inputs[0].flatten(0, -2))
        found["normalized"].append((y if beta is None else y - beta) / gamma)
        found["output"].append(y)

    hooks = [norm.register_forward_hook(look) for norm, _ in _norms(model)]
    try:
        model(x)
    finally:
        for hook in hooks:
            hook.remove()
    return found


@contextmanager
def quantized(
    model: CausalLanguageModel,
    *,
    bits: int = 8,
    fine: bool = False,
    outputs: bool = True,
    inputs: bool = False,
    weights: bool = True,
    statistics: bool = False,
) -> Iterator[CausalLanguageModel]:
    """Yield a copy of a model with quantized numbers in its norms and the matrices after them.

    Args:
        model: a Pre-LN model; it isn't changed.
        bits: how many bits an integer has.
        fine: a scale for each token and for each row of a matrix, not just one per tensor.
        outputs: whether the outputs of the norms are quantized.
        inputs: whether the norms' inputs are quantized.
        weights: whether the matrices that read the norms are quantized.
        statistics: whether the norms compute their means and variances from quantized inputs, but
            normalize the exact ones.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> x = torch.tensor([[1, 2, 3]])
        >>> with quantized(model, bits=4) as coarse:
        ...     torch.equal(coarse(x), model(x))
        False
    """
    model = copy.deepcopy(model)
    axis = -1 if fine else None
    if weights:
        for _, weight, _ in readers(model):
            weight.data = quantize(weight.data, axis=axis, bits=bits)

    def before(_norm: nn.Module, given: tuple[Tensor]) -> tuple[Tensor]:
        return (quantize(given[0], axis=axis, bits=bits),)

    def after(_norm: nn.Module, _given: tuple[Tensor], y: Tensor) -> Tensor:
        return quantize(y, axis=axis, bits=bits)

    def own_statistics(norm: Any, given: tuple[Tensor], _y: Tensor) -> Tensor:
        rounded = quantize(given[0], axis=axis, bits=bits)
        variance = rounded.var(-1, correction=0, keepdim=True)
        xhat = (given[0] - rounded.mean(-1, keepdim=True)) / (variance + norm.eps).sqrt()
        result: Tensor = xhat * norm.weight + norm.bias
        return result

    for norm, _ in _norms(model):
        if statistics:
            norm.register_forward_hook(own_statistics)
        if inputs:
            norm.register_forward_pre_hook(before)
        if outputs:
            norm.register_forward_hook(after)
    yield model


def versions(
    model: CausalLanguageModel, x: Tensor, rng: np.random.Generator
) -> dict[str, CausalLanguageModel]:
    """Return versions of a model that compute the same function with different scales or axes.

    Args:
        model: a Pre-LN model with LayerNorms, in float64; it isn't changed.
        x: characters for the factors and the principal axes, shape `(N, L)`.
        rng: draws the rotation.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> model = language_model.build(9, rng, layers=1, width=8, heads=2)
        >>> list(versions(model, torch.tensor([[1, 2, 3]]), rng))[:3]
        ['as trained', 'smoothed', 'folded']
    """
    folded = to_rms(model)
    axes = principal_basis(torch.cat(norm_tensors(folded, x)["input"]))
    planted = plant_(copy.deepcopy(model))
    return {
        "as trained": model,
        "smoothed": smooth_(copy.deepcopy(model), x),
        "folded": folded,
        "rotated": rotate_(copy.deepcopy(folded), random_rotation(len(axes), rng)),
        "principal axes": rotate_(copy.deepcopy(folded), axes),
        "planted": planted,
        "planted, smoothed": smooth_(copy.deepcopy(planted), x),
    }


@torch.no_grad()
def product_error(
    model: CausalLanguageModel, x: Tensor, *, bits: int = 8, fine: bool = False
) -> float:
    r"""Return the relative error of the linear layer after each norm, averaged over the norms.

    The norms' outputs and the weight matrices are quantized; the norms' inputs and the biases stay
    exact.

    .. math::
        \frac{\| Q(Y)\, Q(W)^\top - Y W^\top \|}{\| Y W^\top + b \|}

    The layer's output, :math:`Y W^\top + b`, is the same in all `versions` of a model. The product
    by itself isn't, since `fold_` moves part of it into the bias.

    Args:
        model: a Pre-LN model.
        x: characters, of shape `(N, L)`.
        bits: how many bits an integer has.
        fine: a scale for each token and for each row of a matrix.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> x = torch.tensor([[1, 2, 3]])
        >>> product_error(model, x) < product_error(model, x, bits=4)
        True
    """
    axis = -1 if fine else None
    errors = []
    outputs = norm_tensors(model, x)["output"]
    for (_, weight, bias), y in zip(readers(model), outputs, strict=True):
        exact = y @ weight.T
        found = quantize(y, axis=axis, bits=bits) @ quantize(weight, axis=axis, bits=bits).T
        errors.append(float((found - exact).norm() / (exact + bias).norm()))
    return sum(errors) / len(errors)


@torch.no_grad()
def test_loss(model: CausalLanguageModel, batch: tuple[Tensor, Tensor]) -> float:
    """Return the mean cross-entropy of the next character.

    Example:
        >>> model = language_model.build(9, np.random.default_rng(0), layers=1, width=8, heads=2)
        >>> test_loss(model, (torch.tensor([[1, 2, 3]]), torch.tensor([[2, 3, 4]]))) > 0
        True
    """
    return language_model.loss(model, batch).item()


def onnx_operations(static: bool) -> list[str]:
    """Quantize a LayerNorm and a matrix with ONNX Runtime's tools, and list what's executed.

    Args:
        static: whether scales are computed in advance (`quantize_static`) or at run time
            (`quantize_dynamic`).

    Returns:
        The graph's operations, after ONNX Runtime's optimizations.

    Example:
        >>> onnx_operations(static=False)[0]
        'LayerNormalization'
    """
    import onnx  # not at the top, because these imports take seconds
    import onnxruntime  # type: ignore[import-untyped]
    from onnxruntime import quantization

    logger = logging.getLogger()
    level = logger.level
    logger.setLevel(logging.ERROR)  # it recommends preprocessing, which changes nothing here
    try:
        with TemporaryDirectory() as folder:
            plain, coarse, fast = (Path(folder) / f"{name}.onnx" for name in "abc")
            onnx.save(_onnx_model(), plain)
            if static:
                quantization.quantize_static(plain, coarse, _Calibration())
            else:
                quantization.quantize_dynamic(plain, coarse)
            options = onnxruntime.SessionOptions()
            options.log_severity_level, options.intra_op_num_threads = 4, 1
            options.optimized_model_filepath = str(fast)
            # Only optimizations that don't depend on the processor.
            options.graph_optimization_level = (
                onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
            )
            onnxruntime.InferenceSession(str(coarse), options, providers=["CPUExecutionProvider"])
            return [node.op_type for node in onnx.load(fast).graph.node]
    finally:
        logger.setLevel(level)


def _rows() -> Array:
    return np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)


class _Calibration:
    """What `quantize_static` reads: one batch, then None."""

    def __init__(self) -> None:
        self.batches = iter([{"x": _rows()}])

    def get_next(self) -> dict[str, Array] | None:
        return next(self.batches, None)


def _onnx_model() -> Any:
    """LayerNorm over 8 features and a matrix with 4 outputs, as an ONNX model."""
    import onnx
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(1)
    shapes = {"gamma": (8,), "beta": (8,), "W": (8, 4)}
    initial = [
        numpy_helper.from_array(rng.normal(size=shape).astype(np.float32), name)
        for name, shape in shapes.items()
    ]
    nodes = [
        helper.make_node("LayerNormalization", ["x", "gamma", "beta"], ["y"]),
        helper.make_node("MatMul", ["y", "W"], ["z"]),
    ]
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "norm_and_matrix",
        [helper.make_tensor_value_info("x", kind, (5, 8))],
        [helper.make_tensor_value_info("z", kind, (5, 4))],
        initial,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
