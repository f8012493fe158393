"""Random recurrent layers, what they compute, and how close that has to be."""

import numpy as np
import torch

from lnbook.recurrent import parameter_shapes


def layer_case(variant, sizes, inputs=2, size=3, dtype=torch.float64, bias=True):
    """Return rows, states and parameters of one layer, all random and all requiring gradients."""
    rng = np.random.default_rng(0)

    def random(*shape, scale=1.0):
        values = torch.tensor(scale * rng.standard_normal(shape)).to(dtype)
        return values.requires_grad_()

    shapes = parameter_shapes(variant, inputs, size, bias)
    parameters = {
        name: random(*shape, scale=shape[-1] ** -0.5 if len(shape) == 2 else 1.0)
        for name, shape in shapes.items()
    }
    states = [random(sizes[0], size) for _ in range(2)]
    return [random(sum(sizes), inputs), *states, parameters]


def results_and_gradients(run, variant, sizes, case, eps=1e-5):
    """Return the three results of a loop, and then all gradients."""
    rows, h, c, parameters = case
    results = run(variant, rows, sizes, h, c, parameters, eps)
    rng = np.random.default_rng(5)
    upstream = [torch.tensor(rng.standard_normal(r.shape)).to(r.dtype) for r in results]
    inputs = [rows, h, c, *parameters.values()]
    grads = torch.autograd.grad(results, inputs, upstream)
    return [tensor.detach() for tensor in (*results, *grads)]


def assert_all_close(found, expected, tolerance):
    """Compare each pair of tensors, relative to the largest number if that's above 1."""
    for tensor, other in zip(found, expected, strict=True):
        scale = max(1.0, float(other.detach().abs().max())) if other.numel() else 1.0
        torch.testing.assert_close(tensor, other, rtol=0.0, atol=tolerance * scale)
