"""The checkers accept correct answers and name each known mistake."""

import math

import torch

from lnbook.chapters.gradient.autograd_function import exercises
from tests.helpers.verdicts import verdict_test


def features(shape):
    return tuple(range(-len(shape), 0))


def rms_norm(change=lambda gradients, dy: gradients, saves_root=False):
    """Return the correct function, with `change` applied to its gradients."""

    def root(x, shape, eps):
        return (x.square().mean(features(shape), keepdim=True) + eps).rsqrt()

    class RMSNorm(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, shape, weight, eps):
            r = root(x, shape, eps)
            ctx.save_for_backward(x, weight, *([r] if saves_root else []))
            ctx.shape, ctx.eps = shape, eps
            return x * r if weight is None else x * r * weight

        @staticmethod
        def backward(ctx, dy):
            x, weight, *saved = ctx.saved_tensors
            r = saved[0] if saved else root(x, ctx.shape, ctx.eps)
            xhat, g = x * r, dy if weight is None else dy * weight
            dx = r * (g - xhat * (g * xhat).mean(features(ctx.shape), keepdim=True))
            dw = None if weight is None else (dy * xhat).sum_to_size(weight.shape)
            return change((dx, None, dw, None), dy)

    return RMSNorm.apply


def fails_on_one_row(a, dy):
    """Without leading axes, the tuple of axes is empty, and `sum` then sums over all axes."""
    return (*a[:2], a[2].sum(dim=()) if dy.dim() == 1 else a[2], None)


right = rms_norm()


ANSWERS = {
    exercises.check_blind_gradient: [
        ("Correct.", [0.1, 0.2, -0.3, 0.0]),
        ("Correct.", [-200, 100, 100, 0]),
        ("Correct.", torch.tensor([0.1, 0.2, 0.3, -0.6])),
        ("With g = 0", [0, 0, 0, 0]),
        ("The mean of your g is 3", [1, 2, 3, 6]),
        ("The mean of your g is 2.5e-05", [1, -1, 0, 1e-4]),
        ("a missing xhat term goes unnoticed too", [1, -2, 1, 0]),
        ("a missing xhat term goes unnoticed too", torch.tensor([0.7, -1.1, 0.3, 0.1])),
    ],
    exercises.check_gradient_of_squares: [
        ("Correct.", lambda xhat, v, eps: 2 * eps * (v + eps) ** -1.5 * xhat),
        ("Correct.", lambda xhat, v, eps: 2 * (1 - v / (v + eps)) / math.sqrt(v + eps) * xhat),
        ("0 only if eps is 0", lambda xhat, v, eps: 0 * xhat),
        ("a factor of 2", lambda xhat, v, eps: eps * (v + eps) ** -1.5 * xhat),
        ("The factor r is missing", lambda xhat, v, eps: 2 * eps / (v + eps) * xhat),
        ("That's r * g", lambda xhat, v, eps: 2 * (v + eps) ** -0.5 * xhat),
        ("the part that is subtracted", lambda xhat, v, eps: 2 * v * (v + eps) ** -1.5 * xhat),
        ("The sign is flipped", lambda xhat, v, eps: -2 * eps * (v + eps) ** -1.5 * xhat),
        ("shape (4,)", lambda xhat, v, eps: 2 * eps * (v + eps) ** -1.5),
        ("the wrong numbers", lambda xhat, v, eps: 2 * eps * (v + eps) ** -1.5 * xhat + 2e-5),
        ("Did you forget `return`", lambda *_: None),
    ],
    exercises.check_rms_norm_function: [
        ("Correct.", right),
        ("Correct.", lambda x, s, w, e: right(x, s, None, e) * (1 if w is None else w)),
        ("doesn't return a tensor", lambda *_: None),
        ("doesn't come from a torch.autograd.Function", torch.nn.functional.rms_norm),
        (
            "It subtracts the mean",
            lambda x, s, w, e: right(x - x.mean(features(s), keepdim=True), s, w, e),
        ),
        ("the output isn't what RMSNorm returns", lambda *given: right(*given) + 2e-5),
        ("normalizes the last dimension only", lambda x, s, w, e: right(x, s[-1:], w, e)),
        (
            "For x of shape (4,), normalized_shape=(4,) and a weight, it r",
            rms_norm(fails_on_one_row),
        ),
        ("passes gradcheck, but not gradgradcheck", rms_norm(saves_root=True)),
        ("the gradient for x is wrong", rms_norm(lambda a, _: (a[0] + 2e-5, *a[1:]))),
        ("the gradient for weight is wrong", rms_norm(lambda a, _: (*a[:2], a[2] + 2e-5, None))),
        ("backward returns None for weight", rms_norm(lambda a, _: (*a[:2], None, None))),
        ("never over the features", rms_norm(lambda a, dy: (*a[:2], dy.sum(-1), None))),
        ("Return one gradient for each argument", rms_norm(lambda a, _: (a[0], a[2]))),
        ("raised ZeroDivisionError: division by zero", lambda *_: 1 / 0),
    ],
}

test_answers = verdict_test(ANSWERS)
