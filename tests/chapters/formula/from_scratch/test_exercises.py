"""Each wrong module has one mistake, and the checkers recognize mistakes in answers."""

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lnbook.chapters.formula.from_scratch import exercises
from lnbook.chapters.shared import wrong_layer_norms
from lnbook.chapters.shared.checker import Verdict
from lnbook.layers import LayerNorm
from tests.helpers.verdicts import expect, verdict_test

ALL_WRONG = {**wrong_layer_norms.WRONG, **wrong_layer_norms.MORE_WRONG}


def agree(c, mean=3.0, spread=1.0, eps=1e-5, shape=(4, 5), random=("weight", "bias")) -> bool:
    """Whether a module agrees with nn.LayerNorm on fixed data."""
    generator = np.random.default_rng(5)
    theirs = nn.LayerNorm(shape, eps=eps, dtype=torch.float64)
    for name in random:
        theirs.state_dict()[name].copy_(torch.from_numpy(generator.normal(size=shape)))
    ours = c(shape, eps=eps, dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    x = torch.from_numpy(generator.normal(mean, spread, size=(20, *shape)))
    return torch.allclose(ours(x), theirs(x), rtol=1e-7, atol=1e-7)


# For each wrong module, a case in which its one mistake doesn't matter.
HARMLESS: dict[str, dict[str, object]] = {
    "eps outside the root": {"eps": 0.0},
    "eps fixed at 1e-5": {"eps": 1e-5},
    "one-pass variance": {"mean": 0.0},
    "gamma and beta ignored": {"random": ()},
    "(xhat + beta) * gamma": {"random": ("weight",)},
    "last axis only": {"shape": (5,)},
    "no eps": {"eps": 0.0},
}


@pytest.mark.parametrize("name", ALL_WRONG)
def test_a_wrong_module_is_wrong_in_one_way(name: str) -> None:
    candidate = ALL_WRONG[name]
    hard = {"mean": 1e4, "spread": 0.01} if name == "one-pass variance" else {"eps": 0.1}
    assert agree(LayerNorm, **hard)
    assert not agree(candidate, **hard)
    if name in HARMLESS:
        assert agree(candidate, **HARMLESS[name])
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 4)))
    assert candidate(4, elementwise_affine=False)(x).shape == x.shape
    assert candidate(4, bias=False, dtype=torch.float64)(x).shape == x.shape


def test_every_wrong_module_has_a_hint_a_name_and_a_mistake_of_its_own() -> None:
    assert set(exercises.HINTS) == set(ALL_WRONG)
    assert len({candidate.__name__ for candidate in ALL_WRONG.values()}) == len(ALL_WRONG)
    generator = np.random.default_rng(6)
    x = torch.from_numpy(generator.normal(1e4, 0.01, size=(6, 4, 5)))
    weight, bias = torch.from_numpy(generator.normal(size=(2, 4, 5)))
    layers = [candidate((4, 5), eps=1e-4, dtype=torch.float64) for candidate in ALL_WRONG.values()]
    for layer in layers:
        layer.load_state_dict({"weight": weight, "bias": bias})
    for one, other in combinations([layer(x) for layer in layers], 2):
        assert not torch.allclose(one, other)


def strong(candidate: type[nn.Module]) -> bool:
    return agree(candidate, eps=0.1) and agree(candidate, mean=1e4, spread=0.01)


@pytest.mark.parametrize("name", ALL_WRONG)
def test_a_test_that_misses_one_module_gets_its_hint(name: str) -> None:
    verdict = exercises.check_test(lambda c: strong(c) or c is ALL_WRONG[name])
    told = f"Your test lets 1 of 12 wrong modules pass.\nThe first: {name}. "
    assert verdict == Verdict(False, told + exercises.HINTS[name])


def same_bits(candidate: type[nn.Module]) -> bool:
    """A test that notices nothing but rounding."""
    x = torch.from_numpy(np.random.default_rng(7).normal(size=(20, 10)))
    ours, theirs = (one(10, dtype=torch.float64) for one in (candidate, nn.LayerNorm))
    return torch.equal(ours(x), theirs(x))


def in_32_bits(candidate: type[nn.Module]) -> bool:
    """A test on so many numbers that rounding exceeds the tolerance."""
    x = torch.from_numpy(np.random.default_rng(7).normal(size=(1000, 10))).float()
    return torch.allclose(candidate(10)(x), nn.LayerNorm(10)(x))


def one_pass(layer: nn.Module, x: Tensor, _: Tensor) -> Tensor:
    mean = x.mean(1, keepdim=True)
    variance = x.square().mean(1, keepdim=True) - mean.square()
    xhat = (x - mean) / torch.sqrt(variance + layer.eps)
    return xhat * layer.weight[:, None, None] + layer.bias[:, None, None]


CALLS = iter(range(99))


def with_parameters(**made: Callable[[int], Tensor]) -> type[nn.Module]:
    """A module without `forward` that creates these parameters from the number of channels."""

    def init(self, channels: int, eps: float = 1e-5) -> None:
        nn.Module.__init__(self)
        self.eps = eps
        for name, make in made.items():
            setattr(self, name, nn.Parameter(make(channels)))

    return type("Made", (nn.Module,), {"__init__": init})


NoForward = with_parameters(weight=torch.ones, bias=torch.zeros)


class Pixelwise(NoForward):
    def forward(self, x: Tensor) -> Tensor:
        last = x.permute(0, 2, 3, 1)
        y = nn.functional.layer_norm(last, self.weight.shape, self.weight, self.bias, self.eps)
        return y.permute(0, 3, 1, 2)


class Inherits(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


def returning(change: Callable[[Pixelwise, Tensor, Tensor], object]) -> type[nn.Module]:
    """A module that returns `change(layer, x, y)`, where y is correct."""

    def forward(layer: Pixelwise, x: Tensor) -> object:
        return change(layer, x, Pixelwise.forward(layer, x))

    return type("Changed", (Pixelwise,), {"forward": forward})


@pytest.mark.parametrize(
    "message", exercises._mistakes_2d(torch.eye(2)[None, :, None], *torch.eye(2), eps=1.0)
)
def test_layer_norm_2d_names_each_mistake(message: str) -> None:
    wrong = returning(lambda s, x, _: exercises._mistakes_2d(x, s.weight, s.bias, s.eps)[message])
    assert exercises.check_layer_norm_2d(wrong) == Verdict(False, message)


ANSWERS = {
    exercises.check_test: [
        ("Correct.", strong),
        ("Correct.", lambda c: np.testing.assert_equal(strong(c), True)),
        ("Correct.", lambda c: torch.tensor(strong(c))),
        ("rejects nn.LayerNorm:\nit returned False.\nCompute in float64, a", lambda _: False),
        ("64 bits, but rounds differently:\nit returned False.", same_bits),
        ("64 bits, but rounds differently:\nit returned False.", in_32_bits),
        (
            "rejects nn.LayerNorm:\nRuntimeError: Given norma",
            lambda c: c((4, 5))(torch.zeros(2, 3)),
        ),
        ("it returned an array", lambda c: torch.ones(3) == (0 * c(3)(torch.ones(3)) + 1)),
        ("rejects the LayerNorm of lnbook", lambda c: c is nn.LayerNorm),
        ("lets 12 of 12 wrong modules pass", lambda c: c(5)(torch.ones(3, 5)).shape == (3, 5)),
        ("lets 12 of 12 wrong modules pass.\nDoes it compare the o", lambda c: [agree(c)].clear()),
        ("lets 2 of 12 wrong modules pass.\nThe first: eps fixed at 1e-5.", agree),
        ("lets 1 of 12 wrong modules pass.\nThe first: one-pass", lambda c: agree(c, eps=0.1)),
        (
            "It passed before: does your data change?",
            lambda c: strong(c) and next(CALLS) < len(exercises.RIGHT),
        ),
        ("Pass the function itself", "a test"),
    ],
    exercises.check_when_noticed: [
        ("Correct.", 0.366),
        ("Correct.", 0.37),
        ("Correct.", 0.36),
        *exercises.NOT_NOTICED.items(),
        ("This is the variance", 0.134),
        ("You left out the term", 0.71),
        ("and solve for sigma", 0.2),
        ("Your sigma is still missing", ...),
    ],
    exercises.check_layer_norm_2d: [
        ("Correct.", Pixelwise),
        ("Correct.", Inherits),
        ("Your module has no `forward` yet", NoForward),
        (
            "but has none. A tensor counts",
            type("Plain", (with_parameters(),), {"weight": torch.ones(4)}),
        ),
        ("parameters `weight` and `bias`, but has gamma.", with_parameters(gamma=torch.ones)),
        (
            "`weight` should have shape",
            with_parameters(weight=lambda c: torch.ones(c, 1, 1), bias=torch.zeros),
        ),
        ("all ones", with_parameters(weight=torch.zeros, bias=torch.zeros)),
        ("`bias` all zeros", with_parameters(weight=torch.ones, bias=torch.ones)),
        ("Creating your module raised TypeError", nn.ReLU),
        ("should inherit from nn.Module", lambda channels, eps: torch.ones(channels)),
        ("Pass the class", Pixelwise(3)),
        ("It normalizes along the width, the last axis", nn.LayerNorm),
        ("Your module raised RuntimeError", returning(lambda s, x, _: x @ s.weight[:2])),
        ("Did you forget `return`?", returning(lambda *_: None)),
        ("should return a tensor, not ndarray", returning(lambda _s, x, _: x.numpy())),
        ("changes its input", returning(lambda _s, x, y: (x.zero_(), y)[1])),
        ("the values are off", returning(lambda _s, _x, y: y + 2e-5)),
        ("back to axis 1", returning(lambda _s, _x, y: y.permute(0, 2, 3, 1))),
        ("different permute to move", returning(lambda _s, _x, y: y.permute(0, 3, 1, 2))),
        (
            "back with reshape or view. Use permute",
            returning(lambda _s, x, y: y.permute(0, 2, 3, 1).reshape(x.shape)),
        ),
        ("only to 32-bit precision", returning(lambda _s, _x, y: y.float())),
        ("cancellation. Subtract the mean before you square", returning(one_pass)),
    ],
}


RIGHT_BY_HAND = {
    "right": [-1, 3],
    "shifted_first": [0, 4],
    "unbiased": [-0.41, 2.41],
    "visible_when_new": 1,
}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "Correct."),
        ({"unbiased": (1 - np.sqrt(2), 1 + np.sqrt(2)), "visible_when_new": 1.0}, "Correct."),
        ({"right": [0, 4]}, "right: you added beta before"),
        ({"right": [-0.41, 2.41]}, "right: you divided by H - 1"),
        ({"right": [-1, 1]}, "right: this is the normalized row"),
        ({"right": [1, 3]}, "right: normalize [1, 3] first"),
        ({"right": ...}, "`right` is still missing"),
        ({"shifted_first": [-1, 3]}, "shifted_first: this is the right output"),
        ({"unbiased": [-1, 3]}, "unbiased: this is the right output"),
        ({"unbiased": [-0.71, 0.71]}, "unbiased: this is the normalized row"),
        ({"unbiased": [0, 2]}, "unbiased: you divided by the variance"),
        ({"unbiased": [0.59, 3.41]}, "unbiased: this module applies gamma first"),
        ({"visible_when_new": 2}, "does the order of scale and shift matter?"),
        ({"visible_when_new": 0}, "Which mistake still shows?"),
    ],
)
def test_wrong_by_hand(given: dict[str, object], told: str) -> None:
    expect(exercises.check_wrong_by_hand(**{**RIGHT_BY_HAND, **given}), told)


def test_the_outputs_by_hand_are_those_of_the_modules() -> None:
    x = torch.tensor([[1.0, 3.0]], dtype=torch.float64)
    modules = {
        "right": LayerNorm,
        "shifted_first": ALL_WRONG["(xhat + beta) * gamma"],
        "unbiased": ALL_WRONG["unbiased variance"],
    }
    found = {}
    for name, kind in modules.items():
        layer = kind(2, eps=0.0, dtype=torch.float64)
        torch.nn.init.constant_(layer.weight, 2.0)
        torch.nn.init.constant_(layer.bias, 1.0)
        found[name] = layer(x)[0].detach()
    assert exercises.check_wrong_by_hand(**found, visible_when_new=1).correct


def test_the_usual_tolerance_is_exceeded_where_the_derivation_says() -> None:
    def difference(sigma: float) -> float:
        return abs(np.sqrt(sigma**2 + 1e-5) / (sigma + 1e-5) - 1.0)

    assert difference(0.365) > 1e-5 > difference(0.367)
    assert max(difference(sigma) for sigma in np.linspace(0.367, 50, 10_000)) < 1e-5


test_answers = verdict_test(ANSWERS)
