"""The chapter's checkers accept correct answers and recognize common mistakes."""

import torch
from torch import nn

from lnbook.chapters.practice.fine_tuning import exercises
from tests.helpers.verdicts import verdict_test


def test_the_steps() -> None:
    """The largest step that's rounded away, found by trial and error, is the answer."""
    one = torch.ones((), dtype=torch.bfloat16)
    found = []
    for sign in (1, -1):
        steps = [n * 2.0**-12 for n in range(1, 64)]
        found.append(max(step for step in steps if one + sign * step == one))
    assert exercises.check_steps(*found).correct
    assert exercises.check_steps(0.0039, 0.00195).correct


NORMS = (nn.LayerNorm, nn.RMSNorm, nn.GroupNorm)


def frozen(kinds=NORMS, head=True, first=True):
    def freeze(model):
        if first:
            model.requires_grad_(False)
        for part in model.modules():
            if isinstance(part, kinds):
                part.requires_grad_(True)
        if head:
            model.head.requires_grad_(True)

    return freeze


def leaves(model):
    for part in model.modules():
        if not [*part.children()]:
            part.requires_grad_(isinstance(part, NORMS) or part is model.head)


def leaves_and_own(model):
    leaves(model)
    for parameter in model.parameters(recurse=False):
        parameter.requires_grad_(False)


def by_class_name(model):
    frozen()(model)
    for part in model.modules():
        if "Norm" in type(part).__name__:
            part.requires_grad_(True)


def test_a_norm_that_was_frozen_before() -> None:
    def freeze(model):
        for part in model.modules():
            if not isinstance(part, NORMS):
                for parameter in part.parameters(recurse=False):
                    parameter.requires_grad_(part is model.head)

    assert "was frozen before" in exercises.check_freeze(freeze).message


def test_which() -> None:
    right = {letter: answer for letter, (answer, _) in exercises.WHICH.items()}
    assert exercises.check_which(**right).correct
    for letter, answer in right.items():
        wrong = "both" if answer != "both" else "none"
        assert exercises.check_which(**right | {letter: wrong}).message.startswith(letter)
        assert "still missing" in exercises.check_which(**right | {letter: ...}).message
        assert "but is 'all'" in exercises.check_which(**right | {letter: "all"}).message


ANSWERS = {
    exercises.check_steps: [
        ("Up: that's the distance", 2**-7, 2**-9),
        ("Up: that's a quarter", 2**-9, 2**-9),
        ("Up: the next number", 1.0, 2**-9),
        ("Down: that's the distance", 2**-8, 2**-8),
        ("Down: that's a quarter", 2**-8, 2**-10),
        ("Down: the next number", 2**-8, 1.0),
        ("still missing", ..., 1.0),
    ],
    exercises.check_freeze: [
        ("Correct.", frozen()),
        ("changes nothing", lambda model: None),
        ("belongs to a linear layer", frozen(first=False)),
        ("a convolution", frozen((*NORMS, nn.Conv1d))),
        ("class_token is trained, but it belongs to the model itself", leaves),
        ("in_proj_weight is trained, but it belongs to an attention layer", leaves_and_own),
        ("BatchNorm1d, which isn't one of the three", by_class_name),
        ("head is frozen", frozen(head=False)),
        ("is frozen, but it belongs to a norm, RMSNorm", frozen((nn.LayerNorm, nn.GroupNorm))),
        ("is frozen, but it belongs to a norm, GroupNorm", frozen((nn.LayerNorm, nn.RMSNorm))),
        ("ZeroDivisionError", lambda model: 1 / 0),
    ],
}

test_answers = verdict_test(ANSWERS)
