"""Batch normalization modules, to compare with layer normalization."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from lnbook._check import checked_bool, checked_count, checked_eps, checked_real
from lnbook._check_tensors import Device, check_dtype, check_floating
from lnbook.functional import batch_norm
from lnbook.layers._affine import AffineLayer

__all__ = ["BatchNorm1d", "BatchNorm2d"]


class _BatchNorm(AffineLayer):
    """Base class for the batch norms, which differ in the input dimensions they accept."""

    dimensions: ClassVar[tuple[int, ...]]
    shapes: ClassVar[str]
    _version = 2  # version of the state dict, as in PyTorch: 2 added num_batches_tracked

    num_features: int
    eps: float
    momentum: float | None
    affine: bool
    track_running_stats: bool
    bias: nn.Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        self.num_features = checked_count(num_features, "num_features", name)
        self.eps = checked_eps(eps, name)
        self.momentum = None if momentum is None else checked_real(momentum, "momentum", name)
        self.affine = checked_bool(affine, "affine", name)
        self.track_running_stats = checked_bool(track_running_stats, "track_running_stats", name)
        has_bias = checked_bool(bias, "bias", name) and self.affine
        check_dtype(dtype, name)
        self._make_buffers(device, dtype)
        exist = {"weight": self.affine, "bias": has_bias}
        self._make_parameters((self.num_features,), device, dtype, **exist)

    def _make_buffers(self, device: Device, dtype: torch.dtype | None) -> None:
        tracked = self.track_running_stats
        for name in ("running_mean", "running_var"):
            empty = torch.empty(self.num_features, device=device, dtype=dtype)
            self.register_buffer(name, empty if tracked else None)
        count = torch.tensor(0, dtype=torch.long, device=device)
        self.register_buffer("num_batches_tracked", count if tracked else None)

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the running variance to 1 and the batch count to 0."""
        if self.running_mean is not None:
            self.running_mean.zero_()
        if self.running_var is not None:
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros, and reset the running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        """Return the normalized `input`; in training mode, update the running statistics."""
        self._check(input)
        tracked = self.running_mean is not None
        momentum = self.momentum if self.momentum is not None else 0.0
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked += 1
            if self.momentum is None:  # cumulative average over all batches so far
                momentum = 1.0 / float(self.num_batches_tracked)
        return batch_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not tracked,
            momentum,
            self.eps,
        )

    def _check(self, input: Tensor) -> None:
        name = type(self).__name__
        check_floating(input, "input", name)
        shape = tuple(input.shape)
        if input.ndim not in self.dimensions:
            raise ValueError(
                f"{name}: expected input to have the shape {self.shapes}, "
                f"but got input of shape {shape}"
            )
        if shape[1] != self.num_features:
            raise RuntimeError(
                f"{name}: expected input to have num_features={self.num_features} channels in its "
                f"second dimension, but got input of shape {shape}"
            )

    def extra_repr(self) -> str:
        """Return the arguments in the format of PyTorch's layers."""
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    r"""Normalize each feature over the batch (and over positions, if any).

    .. math::
        y = \gamma \, \frac{x - \mu}{\sqrt{v + \epsilon}} + \beta

    Source: Ioffe and Szegedy 2015, algorithms 1 and 2. In training mode, :math:`\mu` and :math:`v`
    are the mean and biased variance of the batch, so a sample's output depends on the other
    samples, and running statistics are updated. In evaluation mode, the running statistics are
    used. State dicts are interchangeable with those of `torch.nn.BatchNorm1d`. The computation is
    `lnbook.functional.batch_norm`, which is written to be read.

    Args:
        num_features: the size :math:`C` of the second dimension.
        eps: value added to the variance for numerical stability, finite and at least 0.
        momentum: weight of the latest batch in the running statistics; None for a cumulative
            average over all batches so far.
        affine: whether to learn `weight` (and `bias`).
        track_running_stats: whether to keep running statistics; if not, always use batch
            statistics.
        device: device of parameters and buffers.
        dtype: dtype of parameters and buffers: float16, bfloat16, float32 or float64; PyTorch's
            default dtype if None.
        bias: whether to learn `bias`; ignored without `affine`.

    Attributes:
        weight: :math:`\gamma`, of shape `(C,)`, initialized to ones, or None.
        bias: :math:`\beta`, of shape `(C,)`, initialized to zeros, or None.
        running_mean: of shape `(C,)`, initialized to zeros, or None.
        running_var: of shape `(C,)`, initialized to ones, or None.
        num_batches_tracked: number of batches seen by the running statistics, or None.

    Shape:
        Input and output: `(N, C)` or `(N, C, L)`, of the same dtype.

    Raises:
        TypeError: at construction, for an argument of the wrong type.
        RuntimeError: at construction, for a `dtype` not listed above; when called, for an input
            with the wrong number of features.
        ValueError: at construction, for a number out of range; when called, for an input with the
            wrong number of dimensions and, in training mode, for only one value per channel.

    Calls also raise the errors of `lnbook.functional.batch_norm`.

    Example:
        >>> layer = BatchNorm1d(2)
        >>> layer
        BatchNorm1d(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
        >>> layer(torch.tensor([[1.0, 10.0], [3.0, 30.0]])).detach().round(decimals=4)
        tensor([[-1., -1.],
                [ 1.,  1.]])
        >>> layer.running_mean
        tensor([0.2000, 2.0000])
    """

    dimensions = (2, 3)
    shapes = "(N, C) or (N, C, L)"


class BatchNorm2d(_BatchNorm):
    r"""Normalize each channel of a batch of images over the batch and all positions.

    .. math::
        y_{nchw} = \gamma_c \, \frac{x_{nchw} - \mu_c}{\sqrt{v_c + \epsilon}} + \beta_c

    Source: Ioffe and Szegedy 2015, section 3.2. Arguments, attributes, errors and state dicts are
    as in `BatchNorm1d`; state dicts are interchangeable with those of `torch.nn.BatchNorm2d`.

    Shape:
        Input and output: `(N, C, H, W)`, of the same dtype.

    Example:
        >>> layer = BatchNorm2d(1)
        >>> image = torch.tensor([[[[1.0, 3.0], [3.0, 1.0]]]])
        >>> layer(image).detach().round(decimals=4).tolist()
        [[[[-1.0, 1.0], [1.0, -1.0]]]]
    """

    dimensions = (4,)
    shapes = "(N, C, H, W)"
