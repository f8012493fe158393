"""A layer with an optional weight and bias for each feature."""

import torch
from torch import nn

from lnbook._check_tensors import Device


class AffineLayer(nn.Module):
    """Base class for the layers: parameters of the same shape, set to ones (`weight`) and zeros."""

    weight: nn.Parameter | None

    def _make_parameters(
        self,
        shape: tuple[int, ...],
        device: Device,
        dtype: torch.dtype | None,
        **exist: bool,
    ) -> None:
        """Register the parameters named in `exist`, and the others as None."""
        for name, exists in exist.items():
            empty = torch.empty(shape, device=device, dtype=dtype) if exists else None
            self.register_parameter(name, None if empty is None else nn.Parameter(empty))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to ones and the bias to zeros, in place, if they exist."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        bias = self._parameters.get("bias")
        if bias is not None:
            nn.init.zeros_(bias)
