"""Initialization for whole models, as assumed in analyses of normalization."""

import numpy as np
import torch
from torch import Tensor, nn

from lnbook._check import check_generator, checked_between, checked_bool
from lnbook._check_tensors import check_module
from lnbook.transformer.attention import SelfAttention

__all__ = ["deepnorm_init_", "xavier_init_"]


def xavier_init_(
    module: nn.Module,
    *,
    zero_query_key: bool = False,
    rng: np.random.Generator | None = None,
) -> nn.Module:
    r"""Draw all weight matrices in a model from Xavier's normal distribution, in place.

    .. math::
        W_{ij} \sim \mathcal{N}\left(0, \frac{2}{n_\mathrm{in} + n_\mathrm{out}}\right),
        \qquad b = 0

    Source: Glorot and Bengio 2010, eq. 12, as a normal distribution; the initialization that Xiong
    et al. 2020 analyze. Query, key and value are treated as three matrices, not as one with three
    times as many rows. Their theorem also assumes :math:`W_Q = W_K = 0`, so that every token
    attends equally to all keys. Norms and embeddings are unchanged.

    Args:
        module: any module; its linear and attention layers (including PyTorch's) are initialized.
        zero_query_key: whether to set the query and key projections to 0. This doesn't affect the
            other weights.
        rng: a NumPy generator, for the same weights on every machine; PyTorch's global generator if
            None.

    Returns:
        `module`.

    Raises:
        TypeError: an argument has the wrong type.

    Example:
        >>> layer = xavier_init_(nn.Linear(3, 2), rng=np.random.default_rng(0))
        >>> layer.bias.tolist(), round(layer.weight[0, 0].item(), 4)
        ([0.0, 0.0], 0.0795)
    """
    checked_bool(zero_query_key, "zero_query_key", "xavier_init_")
    return _initialize(module, 0.0 if zero_query_key else 1.0, 1.0, rng, "xavier_init_")


def deepnorm_init_(
    module: nn.Module, beta: float, *, rng: np.random.Generator | None = None
) -> nn.Module:
    r"""Initialize DeepNorm blocks with Xavier's values, scaled by beta except for query and key.

    .. math::
        W \sim \mathcal{N}\left(0, \frac{2 g^2}{n_\mathrm{in} + n_\mathrm{out}}\right), \qquad
        g = 1 \text{ for } W_Q, W_K, \quad
        g = \beta \text{ for } W_V, W_O, W_1, W_2

    Source: Wang et al. 2022, DeepNet, figure 2. Biases are set to 0; norms are unchanged.

    Args:
        module: a block, or a stack of blocks.
        beta: :math:`\beta`, at least 0.
        rng: a NumPy generator; PyTorch's global generator if None.

    Returns:
        `module`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: `beta` is negative or NaN.

    Example:
        >>> layers = [nn.Linear(3, 2), nn.Linear(3, 2)]
        >>> for layer, beta in zip(layers, (1.0, 0.5)):
        ...     _ = deepnorm_init_(layer, beta, rng=np.random.default_rng(0))
        >>> torch.equal(layers[1].weight, 0.5 * layers[0].weight)
        True
    """
    gain = checked_between(beta, "beta", "deepnorm_init_", 0.0, float("inf"))
    return _initialize(module, 1.0, gain, rng, "deepnorm_init_")


@torch.no_grad()
def _initialize(
    module: nn.Module,
    query_key_gain: float,
    gain: float,
    rng: np.random.Generator | None,
    function: str,
) -> nn.Module:
    check_module(module, "module", function)
    if rng is not None:
        check_generator(rng, function)
    for part in module.modules():
        if isinstance(part, (SelfAttention, nn.MultiheadAttention)):
            query, key, value = part.in_proj_weight.chunk(3)
            _xavier_normal(query, query_key_gain, rng)
            _xavier_normal(key, query_key_gain, rng)
            _xavier_normal(value, gain, rng)
            if part.in_proj_bias is not None:
                part.in_proj_bias.zero_()
        elif isinstance(part, nn.Linear):
            _xavier_normal(part.weight, gain, rng)
            if part.bias is not None:
                part.bias.zero_()
    return module


def _xavier_normal(weight: Tensor, gain: float, rng: np.random.Generator | None) -> None:
    std = gain * (2.0 / sum(weight.shape)) ** 0.5
    if rng is None:
        weight.normal_().mul_(std)
    else:
        weight.copy_(torch.from_numpy(std * rng.standard_normal(tuple(weight.shape))))
