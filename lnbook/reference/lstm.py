r"""One step of the LSTM and its layer-normalized variants, in NumPy and float64.

Notation, the same in every function: :math:`a` holds the summed inputs of the four gates, in the
order input :math:`i`, forget :math:`f`, candidate :math:`g`, output :math:`o`; :math:`\sigma` is
the logistic function and :math:`\odot` the elementwise product. Parameters are named as in
`lnbook.recurrent.LayerNormLSTMCell`; missing biases are treated as zeros.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from lnbook._check import checked_eps
from lnbook.reference._arrays import Array, real, shaped
from lnbook.reference.layer_norm import layer_norm

__all__ = ["STEPS", "ba_step", "carried_step", "lstm_step", "per_gate_step"]

Parameters = Mapping[str, ArrayLike]
State = tuple[Array, Array]


def lstm_step(
    x: ArrayLike, h: ArrayLike, c: ArrayLike, parameters: Parameters, eps: float = 1e-5
) -> State:
    r"""Take one step of the LSTM without normalization.

    .. math::
        a = W_x x + b_x + W_h h + b_h, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(c')

    Source: Gers, Schmidhuber and Cummins 2000, without peephole connections; PyTorch's
    documentation of `LSTMCell`.

    Args:
        x: input, a real array of shape `(N, input_size)`; converted to float64 like the others.
        h: hidden state, of shape `(N, hidden_size)`.
        c: cell state, with the shape of `h`.
        parameters: `weight_ih`, `weight_hh` and, optionally, `bias_ih` and `bias_hh`.
        eps: not used; accepted so that all steps have the same signature.

    Returns:
        `(h', c')` in float64, with the shape of `h`.

    Raises:
        KeyError: a weight is missing.
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": np.zeros((4, 1)), "weight_hh": np.zeros((4, 1))}
        >>> lstm_step([[1.0]], [[0.0]], [[4.0]], parameters)[1]  # half of 4 is kept
        array([[2.]])
    """
    x, h, c, p = _checked("lstm_step", x, h, c, parameters, eps, ())
    a = x @ p["weight_ih"].T + p["bias_ih"] + h @ p["weight_hh"].T + p["bias_hh"]
    i, f, g, o = np.split(a, 4, axis=1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    h = _sigmoid(o) * np.tanh(c)
    return h, c


def ba_step(
    x: ArrayLike, h: ArrayLike, c: ArrayLike, parameters: Parameters, eps: float = 1e-5
) -> State:
    r"""Take one step of Ba, Kiros and Hinton's layer-normalized LSTM.

    .. math::
        a = \operatorname{LN}(W_h h; \alpha_1, \beta_1)
        + \operatorname{LN}(W_x x; \alpha_2, \beta_2) + b, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(\operatorname{LN}(c'; \alpha_3, \beta_3))

    Source: Ba, Kiros and Hinton 2016, eq. 20-22.

    Args:
        x: input, a real array of shape `(N, input_size)`; converted to float64 like the others.
        h: hidden state, of shape `(N, hidden_size)`.
        c: cell state, with the shape of `h`.
        parameters: `weight_ih`, `weight_hh`, the gains `norm_ih_weight`, `norm_hh_weight` and
            `norm_c_weight` and, if present, the biases with matching names, and `bias_gates`.
        eps: value added to each variance, finite and at least 0.

    Returns:
        `(h', c')` in float64, with the shape of `h`.

    Raises:
        KeyError: a weight is missing.
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": np.zeros((8, 1)), "weight_hh": np.zeros((8, 2))}
        >>> parameters |= {"norm_ih_weight": np.ones(8), "norm_hh_weight": np.ones(8)}
        >>> parameters["norm_c_weight"] = np.ones(2)
        >>> h, c = ba_step([[1.0]], [[0.0, 0.0]], [[2.0, 6.0]], parameters)
        >>> c  # carried without a norm
        array([[1., 3.]])
        >>> h.round(3)  # half of tanh(-1) and tanh(1)
        array([[-0.381,  0.381]])
    """
    norms = ("norm_ih", "norm_hh", "norm_c")
    x, h, c, p = _checked("ba_step", x, h, c, parameters, eps, norms)
    from_hidden = _norm(h @ p["weight_hh"].T, p, "norm_hh", eps)
    from_input = _norm(x @ p["weight_ih"].T, p, "norm_ih", eps)
    i, f, g, o = np.split(from_hidden + from_input + p["bias_gates"], 4, axis=1)
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    h = _sigmoid(o) * np.tanh(_norm(c, p, "norm_c", eps))
    return h, c


def carried_step(
    x: ArrayLike, h: ArrayLike, c: ArrayLike, parameters: Parameters, eps: float = 1e-5
) -> State:
    r"""Take one step as `ba_step` does, but carry over the normalized cell.

    .. math::
        a = \operatorname{LN}(W_h h; \alpha_1, \beta_1)
        + \operatorname{LN}(W_x x; \alpha_2, \beta_2) + b, \qquad
        c' = \operatorname{LN}(\sigma(f) \odot c + \sigma(i) \odot \tanh(g);
        \alpha_3, \beta_3), \qquad
        h' = \sigma(o) \odot \tanh(c')

    Source: the code of PyTorch's benchmark `fastrnns/custom_lstms.py` and of TensorFlow Addons'
    `LayerNormLSTMCell`; not Ba, Kiros and Hinton 2016.

    Args:
        x: input, a real array of shape `(N, input_size)`; converted to float64 like the others.
        h: hidden state, of shape `(N, hidden_size)`.
        c: cell state, with the shape of `h`.
        parameters: as in `ba_step`.
        eps: value added to each variance, finite and at least 0.

    Returns:
        `(h', c')` in float64, with the shape of `h`.

    Raises:
        KeyError: a weight is missing.
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": np.zeros((8, 1)), "weight_hh": np.zeros((8, 2))}
        >>> parameters |= {"norm_ih_weight": np.ones(8), "norm_hh_weight": np.ones(8)}
        >>> parameters["norm_c_weight"] = np.ones(2)
        >>> h, c = carried_step([[1.0]], [[0.0, 0.0]], [[2.0, 6.0]], parameters)
        >>> c.round(3)  # the norm of (1, 3)
        array([[-1.,  1.]])
    """
    norms = ("norm_ih", "norm_hh", "norm_c")
    x, h, c, p = _checked("carried_step", x, h, c, parameters, eps, norms)
    from_hidden = _norm(h @ p["weight_hh"].T, p, "norm_hh", eps)
    from_input = _norm(x @ p["weight_ih"].T, p, "norm_ih", eps)
    i, f, g, o = np.split(from_hidden + from_input + p["bias_gates"], 4, axis=1)
    c = _norm(_sigmoid(f) * c + _sigmoid(i) * np.tanh(g), p, "norm_c", eps)
    h = _sigmoid(o) * np.tanh(c)
    return h, c


def per_gate_step(
    x: ArrayLike, h: ArrayLike, c: ArrayLike, parameters: Parameters, eps: float = 1e-5
) -> State:
    r"""Take one step of the LSTM with a separate norm for each gate, after the sum.

    .. math::
        a = W_x x + W_h h, \qquad
        k = \operatorname{LN}(a_k; \gamma_k, \beta_k) \text{ for each gate } k
        \in \{i, f, g, o\}, \qquad
        c' = \sigma(f) \odot c + \sigma(i) \odot \tanh(g), \qquad
        h' = \sigma(o) \odot \tanh(\operatorname{LN}(c'; \gamma_c, \beta_c))

    Source: widely used code, including labml's annotated implementations; not Ba, Kiros and Hinton
    2016.

    Args:
        x: input, a real array of shape `(N, input_size)`; converted to float64 like the others.
        h: hidden state, of shape `(N, hidden_size)`.
        c: cell state, with the shape of `h`.
        parameters: `weight_ih`, `weight_hh`, the gains `norm_gates_weight` (the four gates' gains,
            concatenated) and `norm_c_weight` and, if present, the biases with matching names.
        eps: value added to each variance, finite and at least 0.

    Returns:
        `(h', c')` in float64, with the shape of `h`.

    Raises:
        KeyError: a weight is missing.
        TypeError: an array is not real, or `eps` is not a real number.
        ValueError: the shapes don't match, or `eps` is negative, infinite or NaN.

    Example:
        >>> parameters = {"weight_ih": np.zeros((8, 1)), "weight_hh": np.zeros((8, 2))}
        >>> parameters |= {"norm_gates_weight": np.ones(8), "norm_c_weight": np.ones(2)}
        >>> per_gate_step([[1.0]], [[0.0, 0.0]], [[2.0, 6.0]], parameters)[1]
        array([[1., 3.]])
    """
    x, h, c, p = _checked("per_gate_step", x, h, c, parameters, eps, ("norm_gates", "norm_c"))
    gates = np.split(x @ p["weight_ih"].T + h @ p["weight_hh"].T, 4, axis=1)
    gains = np.split(p["norm_gates_weight"], 4)
    biases = np.split(p["norm_gates_bias"], 4)
    i, f, g, o = (
        layer_norm(gate, gain.shape, gain, bias, eps)
        for gate, gain, bias in zip(gates, gains, biases, strict=True)
    )
    c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
    h = _sigmoid(o) * np.tanh(_norm(c, p, "norm_c", eps))
    return h, c


Step = Callable[[ArrayLike, ArrayLike, ArrayLike, Parameters, float], State]

STEPS: dict[str, Step] = {
    "ba": ba_step,
    "per-gate": per_gate_step,
    "carried": carried_step,
    "none": lstm_step,
}


def _sigmoid(x: Array) -> Array:
    # Written with tanh, which never overflows.
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def _norm(x: Array, parameters: Mapping[str, Array], name: str, eps: float) -> Array:
    weight, bias = parameters[f"{name}_weight"], parameters[f"{name}_bias"]
    return layer_norm(x, weight.shape, weight, bias, eps)


def _checked(
    function: str,
    x: ArrayLike,
    h: ArrayLike,
    c: ArrayLike,
    parameters: Parameters,
    eps: float,
    norms: tuple[str, ...],
) -> tuple[Array, Array, Array, dict[str, Array]]:
    """Return everything in float64, with zeros for missing biases."""
    checked_eps(eps, function)
    h = real(h, "h", function)
    if h.ndim != 2:
        raise ValueError(
            f"{function}: expected h to have the shape (N, hidden_size), but got {h.shape}"
        )
    batch, size = h.shape
    input_size = real(parameters["weight_ih"], "weight_ih", function).shape[-1]
    # Weights are required, biases optional.
    tensors = {
        name: np.zeros(shape)
        if "bias" in name and name not in parameters
        else shaped(parameters[name], name, shape, function)
        for name, shape in _shapes(norms, input_size, size).items()
    }
    x = shaped(x, "x", (batch, input_size), function)
    return x, h, shaped(c, "c", h.shape, function), tensors


def _shapes(norms: tuple[str, ...], input_size: int, size: int) -> dict[str, tuple[int, ...]]:
    gates = (4 * size,)
    shapes: dict[str, tuple[int, ...]] = {
        "weight_ih": (4 * size, input_size),
        "weight_hh": (4 * size, size),
    }
    for norm in norms:
        shape = (size,) if norm == "norm_c" else gates
        shapes |= {f"{norm}_weight": shape, f"{norm}_bias": shape}
    if not norms:
        shapes |= {"bias_ih": gates, "bias_hh": gates}
    elif "norm_ih" in norms:
        shapes["bias_gates"] = gates
    return shapes
