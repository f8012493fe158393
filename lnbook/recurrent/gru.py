r"""Layer-normalized GRUs: a cell for one step, and a module with the interface of `torch.nn.GRU`.

Notation: :math:`r` is the reset gate, :math:`z` the update gate and :math:`n` the candidate, in
PyTorch's order; :math:`\sigma` is the logistic function, :math:`\odot` the elementwise product.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence

from lnbook._check import checked_bool, checked_count, checked_eps
from lnbook._check_tensors import Device, check_dtype
from lnbook.recurrent._autocast import no_autocast
from lnbook.recurrent._given import check_input, checked_state
from lnbook.recurrent._stack import Stack
from lnbook.recurrent.loop import final_rows
from lnbook.recurrent.parameters import checked_variant, fill
from lnbook.recurrent.steps import Parameters

__all__ = ["LayerNormGRU", "LayerNormGRUCell"]

VARIANTS = ("ba", "none")


class LayerNormGRUCell(nn.Module):
    r"""One step of a layer-normalized GRU, with the arguments and state of `torch.nn.GRUCell`.

    .. math::
        a = \operatorname{LN}(W_x x; \alpha_1, \beta_1)
        + \operatorname{LN}(W_h h; \alpha_2, \beta_2), \qquad
        r, z = \sigma(a), \qquad
        m = \operatorname{LN}(W x; \alpha_3, \beta_3)
        + r \odot \operatorname{LN}(U h; \alpha_4, \beta_4), \qquad
        h' = (1 - z) \odot \tanh(m) + z \odot h

    The first two norms run over both gates together, the other two over the candidate. Source: Ba,
    Kiros and Hinton 2016, eq. 26-28, for the default, `variant="ba"`, with :math:`z` and :math:`1 -
    z` swapped, as in PyTorch and in the authors' code. With `variant="none"` (or None), the cell
    has no norms, and its state dict fits `torch.nn.GRUCell`.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: whether the gates, or their norms, learn biases.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.
        variant: "ba", "none" or None.
        eps: value added to each variance, finite and at least 0. With 0, an all-zero state, such as
            the default initial state, can't be normalized and gives NaN.

    Attributes:
        weight_ih, weight_hh: :math:`W_x` above :math:`W`, of shape `(3 * hidden_size, input_size)`,
            and :math:`W_h` above :math:`U`, of shape `(3 * hidden_size, hidden_size)`, initialized
            uniformly in :math:`\pm 1 / \sqrt{n}`, where :math:`n` is the number of columns.
        norm_ih_weight, norm_ih_bias: :math:`\alpha_1, \alpha_3` and :math:`\beta_1, \beta_3`,
            concatenated, of shape `(3 * hidden_size,)`; in "ba".
        norm_hh_weight, norm_hh_bias: likewise :math:`\alpha_2, \alpha_4` and
            :math:`\beta_2, \beta_4`; in "ba".
        bias_ih, bias_hh: as in `torch.nn.GRUCell`; in "none".

    Shape:
        Input: `(N, input_size)` or `(input_size,)`. State: `(N, hidden_size)` or `(hidden_size,)`,
        zeros if not given. Both have the dtype of the parameters. The given state isn't modified.

    Raises:
        TypeError: at construction, for an argument of the wrong type; when called, for an input
            or state that is not a tensor.
        ValueError: at construction, for a size below 1, an unknown variant, or an `eps` out of its
            range; when called, for the wrong number of dimensions or the wrong dtype.
        RuntimeError: at construction, for a `dtype` not listed above; when called, for the wrong
            size or device.

    Example:
        >>> cell = LayerNormGRUCell(3, 2)
        >>> cell
        LayerNormGRUCell(3, 2, variant='ba')
        >>> h = cell(torch.zeros(5, 3))
        >>> cell(torch.ones(5, 3), h).shape
        torch.Size([5, 2])
    """

    NAME = "LayerNormGRUCell"
    weight_ih: Tensor

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Device = None,
        dtype: torch.dtype | None = None,
        *,
        variant: str | None = "ba",
        eps: float = 1e-5,
    ) -> None:
        super().__init__()
        self.input_size = checked_count(input_size, "input_size", self.NAME, least=1)
        self.hidden_size = checked_count(hidden_size, "hidden_size", self.NAME, least=1)
        self.bias = checked_bool(bias, "bias", self.NAME)
        self.variant = checked_variant(variant, self.NAME, VARIANTS)
        self.eps = checked_eps(eps, self.NAME)
        check_dtype(dtype, self.NAME)
        shapes = _shapes_of(self.variant, self.input_size, self.hidden_size, bias)
        for parameter, shape in shapes.items():
            values = torch.empty(shape, device=device, dtype=dtype)
            self.register_parameter(parameter, nn.Parameter(values))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters in place."""
        fill(dict(self.named_parameters()))

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """Return the next hidden state."""
        check_input(input, (1, 2), self.input_size, self.weight_ih, self.NAME)
        shape = (*input.shape[:-1], self.hidden_size)
        h = input.new_zeros(shape)
        if hx is not None:
            h = checked_state(hx, shape, input, "hx", self.NAME)
        # Half-precision states are computed in float32 and rounded once per step.
        working = torch.promote_types(input.dtype, torch.float32)
        parameters = {name: p.to(working) for name, p in self.named_parameters()}
        with no_autocast(input.device):
            from_input = _summed_inputs(input.to(working), parameters, "ih", self.eps)
            return _step(from_input, h.to(working), parameters, self.eps).to(input.dtype)

    def extra_repr(self) -> str:
        """Return the arguments that distinguish one cell from another."""
        bias = "" if self.bias else ", bias=False"
        return f"{self.input_size}, {self.hidden_size}{bias}, variant={self.variant!r}"


class LayerNormGRU(Stack):
    r"""A layer-normalized GRU, with the arguments, shapes and states of `torch.nn.GRU`.

    Every layer is a `LayerNormGRUCell` applied along the sequence:

    .. math::
        h_t = \operatorname{cell}(x_t, h_{t-1})

    Source: Ba, Kiros and Hinton 2016, eq. 26-28, for the default, `variant="ba"`. With
    `variant="none"` (or None), there is no norm, and the state dict, outputs and dropout are the
    same as in `torch.nn.GRU`. The inputs of all steps are projected and normalized at once; the
    rest is a loop over the steps, differentiated by autograd to any order.

    Args:
        input_size: number of features of the input.
        hidden_size: number of features of a state.
        num_layers: number of stacked layers; each takes the output of the one below as input.
        bias: whether the gates, or their norms, learn biases.
        batch_first: whether input and output are `(N, L, *)` rather than `(L, N, *)`; doesn't apply
            to the states.
        dropout: probability of dropping each element of a layer's output before the layer above, in
            training mode.
        bidirectional: whether each layer also runs backward, with separate parameters.
        device: device of the parameters.
        dtype: dtype of the parameters: float16, bfloat16, float32 or float64; PyTorch's default
            dtype if None.
        variant: "ba", "none" or None.
        eps: value added to each variance, finite and at least 0. With 0, an all-zero state, such as
            the default initial state, can't be normalized and gives NaN.

    Attributes:
        weight_ih_l0, weight_hh_l0 and so on: the parameters of `LayerNormGRUCell`, with the
            same names plus the layer number and, for the backward direction, `_reverse`.

    Shape:
        Input: `(L, N, input_size)`, `(N, L, input_size)` with `batch_first`, `(L, input_size)` if
        unbatched, or a `PackedSequence` for sequences of different lengths
        (`torch.nn.utils.rnn.pack_padded_sequence` packs padded ones); L is at least 1. `h_0`: `(D *
        num_layers, N, hidden_size)`, without N for unbatched input, where D is 2 if
        `bidirectional`, otherwise 1; zeros if not given, and never modified. Both have the dtype of
        the parameters; float16 and bfloat16 are computed in float32 and rounded once, at the end of
        each layer.

        Output: the last layer's hidden states, shaped or packed like the input, with `D *
        hidden_size` features, and `h_n`, the states after the last step of each sequence, in the
        shape of `h_0`.

    Raises:
        TypeError: at construction, for an argument of the wrong type; when called, for an input
            that is not a tensor or `PackedSequence`, or a state that is not a tensor.
        ValueError: at construction, for a size below 1, an unknown variant, or a `dropout` or `eps`
            out of its range; when called, for the wrong number of dimensions or the wrong dtype.
        RuntimeError: at construction, for a `dtype` not listed above; when called, for the wrong
            size or device, or an empty sequence.

    Warns:
        UserWarning: at construction, for a `dropout` that has no effect because there is only one
            layer.

    Example:
        >>> gru = LayerNormGRU(3, 2, num_layers=2)
        >>> gru
        LayerNormGRU(3, 2, num_layers=2, variant='ba')
        >>> output, h_n = gru(torch.zeros(7, 5, 3))
        >>> output.shape, h_n.shape
        (torch.Size([7, 5, 2]), torch.Size([2, 5, 2]))
    """

    NAME = "LayerNormGRU"

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Device = None,
        dtype: torch.dtype | None = None,
        variant: str | None = "ba",
        eps: float = 1e-5,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, eps
        )
        self.variant = checked_variant(variant, self.NAME, VARIANTS)
        self._create(device, dtype)

    def reset_parameters(self) -> None:
        """Initialize the parameters in place."""
        for layer, suffix in self._walks():
            fill(self._parameters_of(layer, suffix))

    def cell(self, layer: int = 0, reverse: bool = False) -> LayerNormGRUCell:
        """Return one layer as a cell that shares its parameters with this module.

        Args:
            layer: index of the layer, starting at 0.
            reverse: whether to return the backward direction.

        Raises:
            IndexError: there is no such layer.
        """
        cell = LayerNormGRUCell(
            self._width(layer),
            self.hidden_size,
            self.bias,
            "meta",
            variant=self.variant,
            eps=self.eps,
        )
        self._share(cell, layer, reverse)
        return cell

    def forward(
        self, input: Tensor | PackedSequence, hx: Tensor | None = None
    ) -> tuple[Tensor | PackedSequence, Tensor]:
        """Return the output of the last layer and the last states of all layers."""
        run = self._forward_packed if isinstance(input, PackedSequence) else self._forward
        output, (h_n,) = run(input, hx)  # type: ignore[arg-type]
        return output, h_n

    def _shapes(self, layer: int) -> dict[str, tuple[int, ...]]:
        return _shapes_of(self.variant, self._width(layer), self.hidden_size, self.bias)

    def _zeros(self, zeros: Tensor) -> tuple[Tensor, ...]:
        return (zeros,)

    def _checked(self, hx: Any, shape: tuple[int, ...], input: Tensor) -> tuple[Tensor, ...]:
        return (checked_state(hx, shape, input, "hx", self.NAME),)

    def _run_one(
        self,
        rows: Tensor,
        batch_sizes: list[int],
        states: tuple[Tensor, ...],
        parameters: dict[str, Tensor],
    ) -> tuple[Tensor, ...]:
        (h,), hidden = states, []
        with no_autocast(rows.device):
            from_input = _summed_inputs(rows, parameters, "ih", self.eps)
            for part in from_input.split(batch_sizes):
                h = _step(part, h[: len(part)], parameters, self.eps)
                hidden.append(h)
        return torch.cat(hidden), final_rows(hidden)


def _shapes_of(
    variant: str, input_size: int, hidden_size: int, bias: bool
) -> dict[str, tuple[int, ...]]:
    all_three = (3 * hidden_size,)
    shapes: dict[str, tuple[int, ...]] = {
        "weight_ih": (3 * hidden_size, input_size),
        "weight_hh": (3 * hidden_size, hidden_size),
    }
    if variant == "none":
        shapes |= {"bias_ih": all_three, "bias_hh": all_three}
    else:
        shapes |= {"norm_ih_weight": all_three, "norm_ih_bias": all_three}
        shapes |= {"norm_hh_weight": all_three, "norm_hh_bias": all_three}
    return {name: shape for name, shape in shapes.items() if bias or "bias" not in name}


def _step(from_input: Tensor, h: Tensor, parameters: Parameters, eps: float) -> Tensor:
    """Return the next hidden state, given what the input contributes to gates and candidate."""
    from_hidden = _summed_inputs(h, parameters, "hh", eps)
    r_x, z_x, n_x = from_input.chunk(3, dim=-1)
    r_h, z_h, n_h = from_hidden.chunk(3, dim=-1)
    r, z = torch.sigmoid(r_x + r_h), torch.sigmoid(z_x + z_h)
    n = torch.tanh(n_x + r * n_h)
    return (1.0 - z) * n + z * h


def _summed_inputs(x: Tensor, parameters: Parameters, side: str, eps: float) -> Tensor:
    """Return one side's contribution to r, z and n: normalized, or with PyTorch's bias."""
    a = functional.linear(x, parameters[f"weight_{side}"], parameters.get(f"bias_{side}"))
    gain = parameters.get(f"norm_{side}_weight")
    if gain is None:
        return a
    size = a.shape[-1] // 3
    groups = a.split((2 * size, size), dim=-1)  # the gates together, the candidate by itself
    gains = gain.split((2 * size, size))
    bias = parameters.get(f"norm_{side}_bias")
    biases = (None, None) if bias is None else bias.split((2 * size, size))
    normed = [
        functional.layer_norm(group, weight.shape, weight, shift, eps)
        for group, weight, shift in zip(groups, gains, biases, strict=True)
    ]
    return torch.cat(normed, dim=-1)
