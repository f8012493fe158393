"""Random parameters and inputs, the same on every machine."""

import numpy as np
import torch

# Input shapes, and how many of their trailing dimensions are normalized.
CASES = [
    ((5,), 1),
    ((4, 6), 1),
    ((4, 6), 2),
    ((2, 3, 5), 1),
    ((2, 3, 5), 2),
    ((2, 3, 5), 3),
    ((2, 3, 2, 4), 1),
    ((2, 3, 2, 4), 3),
    ((2, 1, 3, 2, 4), 2),
]


def randomized(module, seed=0, scale=0.5):
    """Give the parameters random values: ones and zeros would hide mistakes."""
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for _, parameter in sorted(module.named_parameters()):
            parameter.copy_(torch.tensor(scale * rng.standard_normal(parameter.shape)))
    return module


def random_tensor(*shape, dtype=torch.float64, seed=1, grad=False):
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.tensor(values).to(dtype).requires_grad_(grad)


def random_input(shape, dtype=torch.float32, seed=1):
    """Like `random_tensor`, but with a nonzero mean."""
    return (2.0 * random_tensor(*shape, seed=seed) + 1.0).to(dtype)
