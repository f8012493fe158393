"""The checkers of the recipes: right answers pass, known mistakes are named."""

import re

import numpy as np
import pytest
import torch

from lnbook.chapters.practice.recipes import exercises


def test_decayed_gain_right_is_what_adamw_leaves() -> None:
    gain = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer = torch.optim.AdamW([gain], lr=0.001, weight_decay=0.1)
    gain.grad = torch.zeros_like(gain)
    for _ in range(50):
        optimizer.step()
    assert exercises.check_decayed_gain(gain.item() ** 100).correct


def by_matrix(weight, bias, gamma, beta):
    return torch.tensor(weight @ np.diag(gamma)), torch.tensor(bias + (weight * beta).sum(1))


def test_fold_right_keeps_the_output_of_torch() -> None:
    rng = np.random.default_rng(0)
    norm, linear = torch.nn.LayerNorm(4).double(), torch.nn.Linear(4, 3).double()
    with torch.no_grad():
        for p in (*norm.parameters(), *linear.parameters()):
            p.copy_(torch.from_numpy(rng.normal(size=tuple(p.shape))))
        x = torch.from_numpy(rng.normal(size=(5, 4)))
        given = (linear.weight, linear.bias, norm.weight, norm.bias)
        w, b = by_matrix(*(p.detach().numpy() for p in given))
        folded = torch.nn.functional.layer_norm(x, (4,)) @ w.T + b
        torch.testing.assert_close(folded, linear(norm(x)), rtol=0, atol=1e-12)


def by_pattern(state):
    ends = {"gamma": "weight", "beta": "bias"}
    pattern = r"(?<=\.LayerNorm\.)(gamma|beta)$"
    return {re.sub(pattern, lambda m: ends[m[1]], key): value for key, value in state.items()}


# For each checker: a few words of its verdict, and the answer that gets it.
ANSWERS = {
    exercises.check_decayed_gain: [
        ("Correct.", 0.61),
        ("of what is left", 0.5),
        ("That is what is lost", 0.393),
        ("without the decay rate", 0.0067),
        ("without the learning rate", 0.0),
        ("No gradient does not mean no change", 1.0),
        ("Decay pulls toward 0", 1.6487),
        ("Each step multiplies the gain", 0.62),
    ],
    exercises.check_fold: [
        ("Correct.", by_matrix),
        *exercises.FOLD_MISTAKES.items(),
        ("Give the function itself", 3),
        ("Did you forget `return`?", lambda *_: None),
        ("should return two arrays", lambda w, *_: w),
        ("Your new weight should be numbers of shape (3, 3)", lambda w, b, g, beta: (w[:1], b)),
        ("Your new bias should be numbers of shape (3,)", lambda w, b, g, beta: (w * g, 0.0)),
        ("are not both right", lambda *given: (by_matrix(*given)[0] + 5e-8, by_matrix(*given)[1])),
        ("changes its arguments", lambda w, b, g, beta: (w * g, np.add(b, w @ beta, out=b))),
    ],
    exercises.check_rename: [
        ("Correct.", by_pattern),
        *exercises.RENAME_MISTAKES.items(),
        ("Give the function itself", "rename"),
        ("Did you forget `return`?", lambda state: None),
        ("should return a dict, but it returned a list", lambda state: list(state)),
        ("'bert.embeddings.LayerNorm.weight' should be there", lambda state: {}),
        ("'more' should not be there", lambda state: {**by_pattern(state), "more": 1}),
        ("values have moved", lambda state: dict.fromkeys(by_pattern(state), 0)),
        ("changes the dict it is given", lambda state: [by_pattern(state), state.clear()][0]),
    ],
}


@pytest.mark.parametrize("check", ANSWERS)
def test_answers_get_their_verdict(check) -> None:
    for words, *answer in ANSWERS[check]:
        verdict = check(*answer)
        assert words in repr(verdict)
        assert verdict.correct == (words == "Correct.")
