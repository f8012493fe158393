r"""One time step of each LSTM, written just like its equations; chapters show this version.

Notation, the same in every function: :math:`a` holds the summed inputs of the four gates, in
PyTorch's order input :math:`i`, forget :math:`f`, candidate :math:`g`, output :math:`o`;
:math:`\sigma` is the logistic function and :math:`\odot` the elementwise product.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor
from torch.nn import functional

from lnbook.recurrent._given import checks_arguments

__all__ = ["STEPS", "Parameters", "ba_step", "carried_step", "lstm_step", "per_gate_step"]

Parameters = Mapping[str, Tensor]


@checks_arguments("none")
def lstm_step(
    x: Tensor, h: Tensor, c: Tensor, parameters: Parameters, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    r"""Take one step of the LSTM without normalization, as `torch.nn.LSTMCell` does.

    .. math::
        a = W_x x + b_x + W_h h + b_h, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(c')

    Source: Gers, Schmidhuber and Cummins 2000, without peephole connections; PyTorch's
    documentation of `LSTMCell`.

    Args:
        x: input of shape `(N, input_size)`.
        h: hidden state :math:`h`, of shape `(N, hidden_size)`.
        c: cell state :math:`c`, with the shape of `h`.
        parameters: tensors keyed by name, as in `LayerNormLSTMCell`, all with the dtype of `x`.
        eps: not used; accepted so that all steps have the same signature.

    Returns:
        `(h', c')`, new tensors with the shape and dtype of `h`.

    Raises:
        KeyError: a parameter is missing.
        TypeError: an argument is not a tensor, or `eps` is not a real number.
        RuntimeError: the shapes, dtypes or devices don't match.
        ValueError: `eps` is negative, infinite or NaN.

    Example:
        >>> zero = torch.zeros(1, 1)
        >>> parameters = {"weight_ih": torch.zeros(4, 1), "weight_hh": torch.zeros(4, 1)}
        >>> lstm_step(zero, zero, zero + 4.0, parameters)[1]  # half of 4 is kept
        tensor([[2.]])
    """
    a = functional.linear(x, parameters["weight_ih"], parameters.get("bias_ih"))
    a = a + functional.linear(h, parameters["weight_hh"], parameters.get("bias_hh"))
    i, f, g, o = a.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


@checks_arguments("ba")
def ba_step(
    x: Tensor, h: Tensor, c: Tensor, parameters: Parameters, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    r"""Take one step of Ba, Kiros and Hinton's layer-normalized LSTM.

    .. math::
        a = \operatorname{LN}(W_h h; \alpha_1, \beta_1)
        + \operatorname{LN}(W_x x; \alpha_2, \beta_2) + b, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(\operatorname{LN}(c'; \alpha_3, \beta_3))

    Source: Ba, Kiros and Hinton 2016, eq. 20-22. The first two norms run over all four gates
    together; the cell is normalized only for the output and carried over unnormalized. The paper
    orders the gates f, i, o, g; a norm over all four doesn't depend on their order.

    Args:
        x: input of shape `(N, input_size)`.
        h: hidden state :math:`h`, of shape `(N, hidden_size)`.
        c: cell state :math:`c`, with the shape of `h`.
        parameters: tensors keyed by name, as in `LayerNormLSTMCell`, all with the dtype of `x`.
        eps: value added to each variance, finite and at least 0.

    Returns:
        `(h', c')`, new tensors with the shape and dtype of `h`.

    Raises:
        KeyError: a weight is missing.
        TypeError: an argument is not a tensor, or `eps` is not a real number.
        RuntimeError: the shapes, dtypes or devices don't match.
        ValueError: `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": torch.zeros(8, 1), "weight_hh": torch.zeros(8, 2)}
        >>> parameters |= {f"norm_{name}_weight": torch.ones(8) for name in ("ih", "hh")}
        >>> parameters["norm_c_weight"] = torch.ones(2)
        >>> zero = torch.zeros(1, 2)
        >>> h, c = ba_step(torch.zeros(1, 1), zero, torch.tensor([[2.0, 6.0]]), parameters)
        >>> c  # carried without a norm
        tensor([[1., 3.]])
        >>> h.round(decimals=3)  # half of tanh(-1) and tanh(1)
        tensor([[-0.3810,  0.3810]])
    """
    a = _summed_inputs(x, h, parameters, eps)
    i, f, g, o = a.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(_norm(c, parameters, "norm_c", eps))
    return h, c


@checks_arguments("carried")
def carried_step(
    x: Tensor, h: Tensor, c: Tensor, parameters: Parameters, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    r"""Take one step as `ba_step` does, but carry over the normalized cell.

    .. math::
        a = \operatorname{LN}(W_h h; \alpha_1, \beta_1)
        + \operatorname{LN}(W_x x; \alpha_2, \beta_2) + b, \qquad
        c' = \operatorname{LN}(\sigma(f) \odot c + \sigma(i) \odot \tanh(g);
        \alpha_3, \beta_3), \qquad
        h' = \sigma(o) \odot \tanh(c')

    Source: the code of PyTorch's benchmark `fastrnns/custom_lstms.py` and of TensorFlow Addons'
    `LayerNormLSTMCell`. This differs from Ba, Kiros and Hinton: here the cell, the LSTM's memory,
    is rescaled at every step.

    Args:
        x: input of shape `(N, input_size)`.
        h: hidden state :math:`h`, of shape `(N, hidden_size)`.
        c: cell state :math:`c`, with the shape of `h`.
        parameters: tensors keyed by name, as in `LayerNormLSTMCell`, all with the dtype of `x`.
        eps: value added to each variance, finite and at least 0.

    Returns:
        `(h', c')`, new tensors with the shape and dtype of `h`.

    Raises:
        KeyError: a weight is missing.
        TypeError: an argument is not a tensor, or `eps` is not a real number.
        RuntimeError: the shapes, dtypes or devices don't match.
        ValueError: `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": torch.zeros(8, 1), "weight_hh": torch.zeros(8, 2)}
        >>> parameters |= {f"norm_{name}_weight": torch.ones(8) for name in ("ih", "hh")}
        >>> parameters["norm_c_weight"] = torch.ones(2)
        >>> zero = torch.zeros(1, 2)
        >>> h, c = carried_step(torch.zeros(1, 1), zero, torch.tensor([[2.0, 6.0]]), parameters)
        >>> c.round(decimals=3)  # the norm of (1, 3)
        tensor([[-1.,  1.]])
    """
    a = _summed_inputs(x, h, parameters, eps)
    i, f, g, o = a.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    c = _norm(c, parameters, "norm_c", eps)
    h = torch.sigmoid(o) * torch.tanh(c)
    return h, c


@checks_arguments("per-gate")
def per_gate_step(
    x: Tensor, h: Tensor, c: Tensor, parameters: Parameters, eps: float = 1e-5
) -> tuple[Tensor, Tensor]:
    r"""Take one step of the LSTM with a separate norm for each gate, after the sum.

    .. math::
        a = W_x x + W_h h, \qquad
        k = \operatorname{LN}(a_k; \gamma_k, \beta_k) \text{ for each gate } k
        \in \{i, f, g, o\}, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(\operatorname{LN}(c'; \gamma_c, \beta_c))

    Source: widely used code, including labml's annotated implementations; not Ba, Kiros and Hinton
    2016, whose norms run over the four gates together and before the sum. There is no bias
    :math:`b`: the :math:`\beta_k` of the norms play that role.

    Args:
        x: input of shape `(N, input_size)`.
        h: hidden state :math:`h`, of shape `(N, hidden_size)`.
        c: cell state :math:`c`, with the shape of `h`.
        parameters: tensors keyed by name, as in `LayerNormLSTMCell`, all with the dtype of `x`.
        eps: value added to each variance, finite and at least 0.

    Returns:
        `(h', c')`, new tensors with the shape and dtype of `h`.

    Raises:
        KeyError: a weight is missing.
        TypeError: an argument is not a tensor, or `eps` is not a real number.
        RuntimeError: the shapes, dtypes or devices don't match.
        ValueError: `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": torch.zeros(8, 1), "weight_hh": torch.zeros(8, 2)}
        >>> parameters["norm_gates_weight"] = torch.ones(8)
        >>> parameters["norm_c_weight"] = torch.ones(2)
        >>> zero = torch.zeros(1, 2)
        >>> h, c = per_gate_step(torch.zeros(1, 1), zero, torch.tensor([[2.0, 6.0]]), parameters)
        >>> c
        tensor([[1., 3.]])
    """
    a = functional.linear(x, parameters["weight_ih"]) + functional.linear(
        h, parameters["weight_hh"]
    )
    i, f, g, o = _norm_each_gate(a, parameters, eps)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    h = torch.sigmoid(o) * torch.tanh(_norm(c, parameters, "norm_c", eps))
    return h, c


Step = Callable[[Tensor, Tensor, Tensor, Parameters, float], tuple[Tensor, Tensor]]

# These skip the checks, which would cost time at every step; the loop checks once.
STEPS: dict[str, Step] = {
    variant: step.__wrapped__  # type: ignore[attr-defined]
    for variant, step in {
        "ba": ba_step,
        "per-gate": per_gate_step,
        "carried": carried_step,
        "none": lstm_step,
    }.items()
}


def _summed_inputs(x: Tensor, h: Tensor, parameters: Parameters, eps: float) -> Tensor:
    from_hidden = _norm(functional.linear(h, parameters["weight_hh"]), parameters, "norm_hh", eps)
    from_input = _norm(functional.linear(x, parameters["weight_ih"]), parameters, "norm_ih", eps)
    bias = parameters.get("bias_gates")
    return from_hidden + from_input if bias is None else from_hidden + from_input + bias


def _norm(x: Tensor, parameters: Parameters, name: str, eps: float) -> Tensor:
    weight, bias = parameters[f"{name}_weight"], parameters.get(f"{name}_bias")
    return functional.layer_norm(x, weight.shape, weight, bias, eps)


def _norm_each_gate(a: Tensor, parameters: Parameters, eps: float) -> list[Tensor]:
    weights = parameters["norm_gates_weight"].chunk(4)
    bias = parameters.get("norm_gates_bias")
    biases = [None] * 4 if bias is None else bias.chunk(4)
    return [
        functional.layer_norm(gate, weight.shape, weight, shift, eps)
        for gate, weight, shift in zip(a.chunk(4, dim=-1), weights, biases, strict=True)
    ]
