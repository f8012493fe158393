"""The wrong modules are wrong in one way each, and the checkers say in which."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lnbook.chapters.formula.from_scratch import exercises
from lnbook.chapters.shared import wrong_layer_norms
from lnbook.chapters.shared.checker import Verdict
from lnbook.layers import LayerNorm

ALL_WRONG = {**wrong_layer_norms.WRONG, **wrong_layer_norms.MORE_WRONG}


def agree(
    candidate: type[nn.Module],
    *,
    mean: float = 3.0,
    spread: float = 1.0,
    eps: float = 1e-5,
    random: bool = True,
    shape: tuple[int, ...] = (4, 5),
    kept: tuple[str, ...] = ("weight", "bias"),
) -> bool:
    """Whether a module agrees with nn.LayerNorm on fixed data."""
    generator = np.random.default_rng(5)
    theirs = nn.LayerNorm(shape, eps=eps, dtype=torch.float64)
    if random:
        with torch.no_grad():
            for name in kept:
                theirs.get_parameter(name).copy_(torch.from_numpy(generator.normal(size=shape)))
    ours = candidate(shape, eps=eps, dtype=torch.float64)
    ours.load_state_dict(theirs.state_dict())
    x = torch.from_numpy(generator.normal(mean, spread, size=(20, *shape)))
    return torch.allclose(ours(x), theirs(x), rtol=1e-7, atol=1e-7)


# What makes each wrong module right: where its one mistake does not matter.
HARMLESS: dict[str, dict[str, object]] = {
    "eps outside the root": {"eps": 0.0},
    "eps fixed at 1e-5": {"eps": 1e-5},
    "one-pass variance": {"mean": 0.0},
    "gamma and beta ignored": {"random": False},
    "(xhat + beta) * gamma": {"kept": ("weight",)},
    "last axis only": {"shape": (5,)},
    "no eps": {"eps": 0.0},
}


@pytest.mark.parametrize("name", ALL_WRONG)
def test_a_wrong_module_is_wrong(name: str) -> None:
    candidate = ALL_WRONG[name]
    hard = {"mean": 1e4, "spread": 0.01} if name == "one-pass variance" else {"eps": 0.1}
    assert agree(LayerNorm, **hard)
    assert not agree(candidate, **hard)


@pytest.mark.parametrize("name", HARMLESS)
def test_a_wrong_module_is_right_where_its_mistake_does_not_matter(name: str) -> None:
    assert agree(ALL_WRONG[name], **HARMLESS[name])  # type: ignore[arg-type]


def test_a_wrong_module_without_parameters() -> None:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(3, 4)))
    for candidate in ALL_WRONG.values():
        assert candidate(4, elementwise_affine=False)(x).shape == x.shape
        assert candidate(4, bias=False, dtype=torch.float64)(x).shape == x.shape


def test_every_wrong_module_has_a_name_and_a_hint() -> None:
    assert set(exercises.HINTS) == set(ALL_WRONG)
    assert len({candidate.__name__ for candidate in ALL_WRONG.values()}) == len(ALL_WRONG)


def test_no_two_wrong_modules_have_the_same_mistake() -> None:
    generator = np.random.default_rng(6)
    x = torch.from_numpy(generator.normal(1e4, 0.01, size=(6, 4, 5)))
    parameters = torch.from_numpy(generator.normal(size=(2, 4, 5)))
    outputs = []
    for candidate in ALL_WRONG.values():
        layer = candidate((4, 5), eps=1e-4, dtype=torch.float64)
        layer.load_state_dict({"weight": parameters[0], "bias": parameters[1]})
        outputs.append(layer(x))
    for number, one in enumerate(outputs):
        for other in outputs[number + 1 :]:
            assert not torch.allclose(one, other)


def strong(candidate: type[nn.Module]) -> bool:
    return agree(candidate, eps=0.1) and agree(candidate, mean=1e4, spread=0.01)


def strong_by_assertion(candidate: type[nn.Module]) -> None:
    assert strong(candidate)


def strong_in_numpy(candidate: type[nn.Module]) -> np.bool_:
    return np.bool_(strong(candidate))


def strong_in_torch(candidate: type[nn.Module]) -> Tensor:
    return torch.tensor(strong(candidate))


@pytest.mark.parametrize("test", [strong, strong_by_assertion, strong_in_numpy, strong_in_torch])
def test_a_strong_test_is_right(test: Callable[[type[nn.Module]], object]) -> None:
    assert exercises.check_test(test).correct


def never(_candidate: type[nn.Module]) -> bool:
    return False


def crashes(candidate: type[nn.Module]) -> bool:
    return bool(candidate((4, 5))(torch.zeros(2, 3)).sum())


def usual(candidate: type[nn.Module]) -> bool:
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(20, 10)))
    ours, theirs = candidate(10, dtype=torch.float64), nn.LayerNorm(10, dtype=torch.float64)
    return torch.allclose(ours(x), theirs(x))


def shapes_only(candidate: type[nn.Module]) -> bool:
    return candidate(5)(torch.ones(3, 5)).shape == (3, 5)


def forgets_return(candidate: type[nn.Module]) -> None:
    agree(candidate)


def changes_its_mind() -> Callable[[type[nn.Module]], bool]:
    calls = iter(range(1000))
    return lambda candidate: strong(candidate) and next(calls) < 2


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (never, "refuses nn.LayerNorm:\nit returned False.\nCompute in float64, or widen"),
        (crashes, "refuses nn.LayerNorm:\nRuntimeError: Given normalized_shape"),
        (lambda c: torch.ones(3) == (0 * c(3)(torch.ones(3)) + 1), "it returned an array"),
        (lambda c: c is nn.LayerNorm, "refuses the LayerNorm of lnbook"),
        (shapes_only, "lets 12 of 12 wrong modules pass"),
        (forgets_return, "lets 12 of 12 wrong modules pass.\nDoes it compare the outputs"),
        (usual, "lets 6 of 12 wrong modules pass.\nThe first: eps outside the root."),
        (lambda c: agree(c, eps=0.1), "lets 1 of 12 wrong modules pass.\nThe first: one-pass"),
        (changes_its_mind(), "It passed before: does your data change?"),
        ("a test", "Give the function itself"),
    ],
)
def test_a_weak_or_broken_test_is_told_why(test: object, expected: str) -> None:
    verdict = exercises.check_test(test)  # type: ignore[arg-type]
    assert not verdict.correct
    assert expected in verdict.message


@pytest.mark.parametrize("name", ALL_WRONG)
def test_a_test_that_misses_one_module_gets_its_hint(name: str) -> None:
    verdict = exercises.check_test(lambda c: strong(c) or c is ALL_WRONG[name])
    assert verdict == Verdict(
        False,
        f"Your test lets 1 of 12 wrong modules pass.\nThe first: {name}. {exercises.HINTS[name]}",
    )


class NoForward(nn.Module):
    """The parameters that the exercise asks for, and nothing else."""

    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))


class Pixelwise(NoForward):
    """The right answer."""

    def forward(self, x: Tensor) -> Tensor:
        last = x.permute(0, 2, 3, 1)
        y = nn.functional.layer_norm(last, self.weight.shape, self.weight, self.bias, self.eps)
        return y.permute(0, 3, 1, 2)


class Directly(Pixelwise):
    def forward(self, x: Tensor) -> Tensor:
        centered = x - x.mean(1, keepdim=True)
        y = centered / torch.sqrt(centered.square().mean(1, keepdim=True) + self.eps)
        return y * self.weight[:, None, None] + self.bias[:, None, None]


class Inherits(nn.LayerNorm):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


@pytest.mark.parametrize("candidate", [Pixelwise, Directly, Inherits])
def test_layer_norm_2d_right(candidate: type[nn.Module]) -> None:
    assert exercises.check_layer_norm_2d(candidate).correct


@pytest.mark.parametrize(
    "message", exercises._mistakes_2d(torch.eye(2)[None, :, None], *torch.eye(2), eps=1.0)
)
def test_layer_norm_2d_names_each_mistake(message: str) -> None:
    class Wrong(Pixelwise):
        def forward(self, x: Tensor) -> Tensor:
            return exercises._mistakes_2d(x, self.weight, self.bias, self.eps)[message]

    assert exercises.check_layer_norm_2d(Wrong) == Verdict(False, message)


class PlainTensors(nn.Module):
    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.weight, self.bias = torch.ones(channels), torch.zeros(channels)


class OtherNames(nn.Module):
    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(channels))


class Shaped(NoForward):
    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__(channels, eps)
        self.weight = nn.Parameter(torch.ones(channels, 1, 1))


class StartsAtZero(NoForward):
    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        super().__init__(channels, eps)
        self.weight = nn.Parameter(torch.zeros(channels))


class NoEps(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()


class NotAModule:
    def __init__(self, channels: int, eps: float = 1e-5) -> None:
        pass


def with_forward(forward: Callable[[Pixelwise, Tensor], object]) -> type[nn.Module]:
    return type("Changed", (Pixelwise,), {"forward": forward})


def in_place(layer: Pixelwise, x: Tensor) -> Tensor:
    y = Pixelwise.forward(layer, x)
    x -= 1.0
    return y


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        (NoForward, "Your module has no `forward` yet"),
        (PlainTensors, "it has none. A tensor counts as a parameter only if it is an nn.Param"),
        (OtherNames, "no parameters `weight` and `bias`; it has gamma."),
        (Shaped, "`weight` should have the shape (4,), one per channel, not (4, 1, 1)"),
        (StartsAtZero, "all ones"),
        (NoEps, "Making your module raised TypeError"),
        (NotAModule, "should inherit from nn.Module"),
        (Pixelwise(3), "Give the class"),
        (nn.LayerNorm, "It normalizes along the width, the last axis"),
        (with_forward(lambda s, x: x @ s.weight[:2]), "Your module raised RuntimeError"),
        (with_forward(lambda _s, _x: None), "Did you forget `return`?"),
        (with_forward(lambda _s, x: x.numpy()), "should return a tensor, not ndarray"),
        (with_forward(in_place), "changes its input"),
        (with_forward(lambda _s, x: x * 1.5), "the values are off"),
        (with_forward(lambda s, x: Pixelwise.forward(s, x).permute(0, 2, 3, 1)), "back to axis 1"),
        (with_forward(lambda s, x: Pixelwise.forward(s, x).permute(0, 3, 1, 2)), "The way back is"),
        (
            with_forward(lambda s, x: Pixelwise.forward(s, x).permute(0, 2, 3, 1).reshape(x.shape)),
            "back with reshape or view. Use permute",
        ),
        (
            with_forward(lambda s, x: Pixelwise.forward(s.double(), x.float().double())),
            "32-bit precision only",
        ),
    ],
)
def test_layer_norm_2d_wrong(candidate: type[nn.Module], expected: str) -> None:
    verdict = exercises.check_layer_norm_2d(candidate)
    assert not verdict.correct
    assert expected in verdict.message
