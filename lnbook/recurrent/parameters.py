"""The parameters of each LSTM: names, shapes and initial values."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from lnbook._check import checked_bool, checked_count, checked_real

__all__ = [
    "checked_forget_bias",
    "checked_variant",
    "fill",
    "initialize",
    "parameter_shapes",
    "shapes_of",
]

VARIANTS = ("ba", "per-gate", "carried", "none")

# The bias that contains the forget bias; the others start at 0.
FORGET_BIASES = {
    "ba": "bias_gates",
    "carried": "bias_gates",
    "per-gate": "norm_gates_bias",
    "none": "bias_ih",
}


def parameter_shapes(
    variant: str, input_size: int, hidden_size: int, bias: bool
) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of one LSTM cell's parameters, in order.

    Args:
        variant: "ba", "per-gate", "carried", "none" or None.
        input_size: number of features of the input.
        hidden_size: number of features of the state.
        bias: whether the gates and the norms have biases.

    Raises:
        TypeError: a size is not an integer, or `bias` is not a bool.
        ValueError: there is no such variant, or a size is below 1.

    Example:
        >>> for name, shape in parameter_shapes("per-gate", 3, 5, bias=True).items():
        ...     print(name, shape)
        weight_ih (20, 3)
        weight_hh (20, 5)
        norm_gates_weight (20,)
        norm_gates_bias (20,)
        norm_c_weight (5,)
        norm_c_bias (5,)
    """
    name = "parameter_shapes"
    return shapes_of(
        checked_variant(variant, name),
        checked_count(input_size, "input_size", name, least=1),
        checked_count(hidden_size, "hidden_size", name, least=1),
        checked_bool(bias, "bias", name),
    )


def checked_variant(variant: Any, function: str, known: Sequence[str] = VARIANTS) -> str:
    """Return the name of the variant, which is "none" for None.

    Raises:
        ValueError: there is no such variant.
    """
    name = "none" if variant is None else variant
    if not isinstance(name, str) or name not in known:
        expected = ", ".join(f'"{name}"' for name in known)
        raise ValueError(
            f"{function}: expected variant to be one of {expected} or None, but got {variant!r}"
        )
    return name


def checked_forget_bias(forget_bias: Any, bias: bool, function: str) -> float:
    """Return the forget bias as a float; None means 1 with biases and 0 without.

    Raises:
        TypeError: `forget_bias` is neither None nor a real number.
        ValueError: `forget_bias` is not finite, or is nonzero without biases.
    """
    if forget_bias is None:
        return 1.0 if bias else 0.0
    value = checked_real(forget_bias, "forget_bias", function)
    if value and not bias:
        raise ValueError(
            f"{function}: expected forget_bias to be 0 or None without biases, "
            f"but got forget_bias={forget_bias!r} and bias=False"
        )
    return value


def shapes_of(
    variant: str, input_size: int, hidden_size: int, bias: bool
) -> dict[str, tuple[int, ...]]:
    """Return the same as `parameter_shapes`, for arguments that have already been checked."""
    gates, cell = (4 * hidden_size,), (hidden_size,)
    shapes: dict[str, tuple[int, ...]] = {
        "weight_ih": (4 * hidden_size, input_size),
        "weight_hh": (4 * hidden_size, hidden_size),
    }
    if variant == "none":
        shapes |= {"bias_ih": gates, "bias_hh": gates}
    elif variant == "per-gate":
        shapes |= {"norm_gates_weight": gates, "norm_gates_bias": gates}
    else:
        shapes |= {"bias_gates": gates, "norm_ih_weight": gates, "norm_ih_bias": gates}
        shapes |= {"norm_hh_weight": gates, "norm_hh_bias": gates}
    if variant != "none":
        shapes |= {"norm_c_weight": cell, "norm_c_bias": cell}
    return {name: shape for name, shape in shapes.items() if bias or "bias" not in name}


def initialize(parameters: Mapping[str, Tensor], variant: str, forget_bias: float) -> None:
    """Initialize the parameters of one LSTM cell in place: `fill`, then the forget bias."""
    fill(parameters)
    if FORGET_BIASES[variant] in parameters:
        with torch.no_grad():
            parameters[FORGET_BIASES[variant]].chunk(4)[1].fill_(forget_bias)


def fill(parameters: Mapping[str, Tensor]) -> None:
    r"""Initialize the parameters of any cell in place.

    The matrices are uniform in :math:`\pm 1 / \sqrt{n}`, each with its own fan-in :math:`n`:
    PyTorch uses `hidden_size` for both, which leaves a narrow input with hardly any influence.
    Gains are 1 and biases 0 (Ba, Kiros and Hinton 2016, supplement).
    """
    with torch.no_grad():
        for name, parameter in parameters.items():
            if parameter.ndim == 2:
                bound = parameter.shape[1] ** -0.5
                nn.init.uniform_(parameter, -bound, bound)
            else:
                nn.init.constant_(parameter, 1.0 if name.endswith("weight") else 0.0)
