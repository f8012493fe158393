"""The NumPy steps, checked against hand-computed values and compositions of PyTorch's layers."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from lnbook.recurrent import parameter_shapes
from lnbook.reference import lstm

VARIANTS = ["ba", "per-gate", "carried", "none"]


def random_case(variant, bias=True, seed=0, batch=3, input_size=5, size=4):
    rng = np.random.default_rng(seed)
    shapes = parameter_shapes(variant, input_size, size, bias)
    parameters = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    x, h, c = (rng.standard_normal((batch, n)) for n in (input_size, size, size))
    return x, h, 3.0 * c, parameters


def composed(variant, x, h, c, parameters, eps):
    """Compute the step with PyTorch's layers, with the gates in the paper's order f, i, o, g."""
    x, h, c = (torch.tensor(array) for array in (x, h, c))
    p = {name: torch.tensor(array) for name, array in parameters.items()}
    size = h.shape[1]

    def norm(a, name, part=slice(None)):
        weight, bias = p[name + "_weight"][part], p.get(name + "_bias")
        bias = torch.zeros_like(weight) if bias is None else bias[part]
        return functional.layer_norm(a, [len(weight)], weight, bias, eps)

    order = torch.cat([torch.arange(size) + place * size for place in (1, 0, 3, 2)])
    x_sum, h_sum = x @ p["weight_ih"][order].mT, h @ p["weight_hh"][order].mT
    if variant == "per-gate":
        gates = [
            norm(a, "norm_gates", slice(place * size, (place + 1) * size))
            for a, place in zip((x_sum + h_sum).split(size, 1), (1, 0, 3, 2), strict=True)
        ]
    else:
        a = norm(h_sum, "norm_hh", order) + norm(x_sum, "norm_ih", order)
        a = a + (p["bias_gates"][order] if "bias_gates" in p else 0.0)
        gates = a.split(size, 1)
    f, i, o, g = gates
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    normed = norm(c, "norm_c")
    h = o.sigmoid() * normed.tanh()
    return h.numpy(), (normed if variant == "carried" else c).numpy()


@pytest.mark.parametrize("variant", ["ba", "per-gate", "carried"])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("eps", [1e-5, 0.3])
def test_equals_a_composition_of_pytorchs_layers(variant, bias, eps):
    case = random_case(variant, bias)
    for found, expected in zip(
        lstm.STEPS[variant](*case, eps), composed(variant, *case, eps), strict=True
    ):
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("bias", [True, False])
def test_without_a_norm_it_is_pytorchs_cell(bias):
    x, h, c, parameters = random_case("none", bias)
    cell = nn.LSTMCell(5, 4, bias, dtype=torch.float64)
    cell.load_state_dict({name: torch.tensor(array) for name, array in parameters.items()})
    expected = cell(torch.tensor(x), (torch.tensor(h), torch.tensor(c)))
    for found, tensor in zip(lstm.lstm_step(x, h, c, parameters), expected, strict=True):
        np.testing.assert_allclose(found, tensor.detach().numpy(), rtol=1e-12, atol=1e-13)


def test_ba_by_hand():
    # With one unit, the four summed inputs are (0, 0, 2, 2), which normalize to (-1, -1, 1, 1); a
    # single cell normalizes to 0, so h is sigmoid(o) tanh(beta).
    parameters = {
        "weight_ih": [[0.0], [0.0], [2.0], [2.0]],
        "weight_hh": np.zeros((4, 1)),
        "norm_ih_weight": np.ones(4),
        "norm_hh_weight": np.ones(4),
        "bias_gates": [0.0, 1.0, 0.0, 0.0],
        "norm_c_weight": [7.0],
        "norm_c_bias": [0.5],
    }
    h, c = lstm.ba_step([[1.0]], [[0.0]], [[3.0]], parameters, eps=1e-300)

    def sigmoid(x):
        return 1.0 / (1.0 + math.exp(-x))

    np.testing.assert_allclose(c, [[sigmoid(0.0) * 3.0 + sigmoid(-1.0) * math.tanh(1.0)]])
    np.testing.assert_allclose(h, [[sigmoid(1.0) * math.tanh(0.5)]])
    carried = lstm.carried_step([[1.0]], [[0.0]], [[3.0]], parameters, eps=1e-300)
    np.testing.assert_allclose(carried[0], h)
    np.testing.assert_allclose(carried[1], [[0.5]])


def test_the_variants_differ():
    x, h, c, parameters = random_case("ba")
    ba, carried = (step(x, h, c, parameters) for step in (lstm.ba_step, lstm.carried_step))
    np.testing.assert_allclose(ba[0], carried[0])
    assert np.abs(ba[1] - carried[1]).max() > 0.1
    # Even with gains of 1 and no biases, Ba's form isn't the same function as one norm per gate.
    plain = {**parameters, "norm_gates_weight": np.ones(16)}
    plain |= {name: np.ones(16) for name in ("norm_ih_weight", "norm_hh_weight")}
    plain = {name: array for name, array in plain.items() if "bias" not in name}
    found = [step(x, h, c, plain)[1] for step in (lstm.ba_step, lstm.per_gate_step)]
    assert np.abs(found[0] - found[1]).max() > 0.1


@pytest.mark.parametrize("variant", VARIANTS)
def test_far_gates_saturate_and_warn_of_nothing(variant):
    x, h, c, parameters = random_case(variant)
    for name in parameters:
        if name.endswith("bias") or name == "bias_ih":
            parameters[name] = 1e4 * parameters[name]
    for state in lstm.STEPS[variant](x, h, c, parameters):
        assert np.isfinite(state).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_arguments_stay_as_they_are(variant):
    case = random_case(variant)
    copies = [array.copy() for array in case[:3]]
    lstm.STEPS[variant](*case)
    for array, copy in zip(case[:3], copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_the_reference_does_without_torch():
    code = "import lnbook.reference.lstm, sys; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
