"""The checkers for the recipes accept correct answers and recognize known mistakes."""

import re

import numpy as np
import pytest
import torch

from lnbook.chapters.practice.recipes import exercises
from tests.helpers.verdicts import verdict_test


def test_decayed_gain_right_agrees_with_adamw() -> None:
    gain = torch.nn.Parameter(torch.ones(1, dtype=torch.float64))
    optimizer = torch.optim.AdamW([gain], lr=0.001, weight_decay=0.1)
    gain.grad = torch.zeros_like(gain)
    for _ in range(50):
        optimizer.step()
    assert exercises.check_decayed_gain(gain.item() ** 100).correct


def by_matrix(weight, gamma, beta):
    return torch.tensor(weight @ np.diag(gamma)), torch.tensor(beta / gamma)


def test_fold_right_keeps_the_output_and_needs_positive_gains() -> None:
    rng = np.random.default_rng(0)
    weight, beta, x = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(5, 4))

    def outputs(gamma):
        w, b = (part.numpy() for part in by_matrix(weight, gamma, beta))
        return np.maximum(gamma * x + beta, 0) @ weight.T, np.maximum(x + b, 0) @ w.T

    gamma = rng.uniform(0.5, 2.0, 4)
    np.testing.assert_allclose(*outputs(gamma), rtol=0, atol=1e-12)
    before, after = outputs(-gamma)
    assert np.abs(before - after).max() > 0.1


def by_pattern(state):
    ends = {"gamma": "weight", "beta": "bias"}
    pattern = r"(?<=\.LayerNorm\.)(gamma|beta)$"
    return {re.sub(pattern, lambda m: ends[m[1]], key): value for key, value in state.items()}


def all_but_layer_scale(state):
    return {
        key
        if "layer_scale" in key
        else key.replace(".gamma", ".weight").replace(".beta", ".bias"): value
        for key, value in state.items()
    }


CAUSES = [cause for cause, _ in exercises.REPORTS.values()]


@pytest.mark.parametrize("name", exercises.REPORTS)
def test_a_wrong_cause_gets_the_reply_for_its_report(name: str) -> None:
    right = dict(zip(exercises.REPORTS, CAUSES, strict=True))
    for cause in set(exercises.CAUSES) - {right[name]}:
        verdict = exercises.check_causes(**right | {name: cause})
        assert verdict.message == f"{name}: {exercises.REPORTS[name][1]}"
    assert sorted(CAUSES) == sorted(exercises.CAUSES)


ANSWERS = {
    exercises.check_decayed_gain: [
        ("Correct.", 0.61),
        ("of what is left", 0.5),
        ("That's what is lost", 0.393),
        ("leaves out the decay", 0.0067),
        ("leaves out the learning rate", 0.0),
        ("A gradient of 0 doesn't mean no change", 1.0),
        ("Decay pulls toward 0", 1.6487),
        ("Each step multiplies the gain", 0.62),
    ],
    exercises.check_fold: [
        ("Correct.", by_matrix),
        ("Correct.", lambda *given: list(by_matrix(*given))),
        *exercises.FOLD_MISTAKES.items(),
        ("Give the function itself", 3),
        ("Did you forget `return`?", lambda *_: None),
        ("should return two arrays", lambda w, *_: w),
        ("Your new weight should be numbers of shape (3, 3)", lambda w, g, beta: (w[:1], beta)),
        ("Your new beta should be numbers of shape (3,)", lambda w, g, beta: (w * g, 0.0)),
        ("aren't both right", lambda *given: (by_matrix(*given)[0] + 2e-5, by_matrix(*given)[1])),
        ("changes its arguments", lambda w, g, beta: (w * g, np.divide(beta, g, out=beta))),
    ],
    exercises.check_causes: [
        ("Correct.", *CAUSES),
        ("a is still missing", ...),
        ("f is still missing", *CAUSES[:5]),
        ("b should be one of dropped bias, epsilon", "overflow", "eps"),
    ],
    exercises.check_rename: [
        ("Correct.", by_pattern),
        *exercises.RENAME_MISTAKES.items(),
        ("Give the function itself", "rename"),
        ("Did you forget `return`?", lambda state: None),
        ("should return a dict, but it returned a list", lambda state: list(state)),
        ("'bert.embeddings.LayerNorm.weight' should be there", lambda state: {}),
        ("'bert.encoder.adapter.beta' should stay as it is", all_but_layer_scale),
        (
            "'bert.encoder.LayerNorm_block.scale.gamma' should stay as it is",
            lambda state: {
                re.sub("gamma$", "weight", re.sub("beta$", "bias", k)) if "LayerNorm" in k else k: v
                for k, v in state.items()
            },
        ),
        (
            "'bert.pooler.NoNorm.gamma' should stay as it is",
            lambda state: {
                re.sub("Norm.gamma$", "Norm.weight", re.sub("Norm.beta$", "Norm.bias", k)): v
                for k, v in state.items()
            },
        ),
        ("'more' should not be there", lambda state: {**by_pattern(state), "more": 1}),
        ("values have moved", lambda state: dict.fromkeys(by_pattern(state), 0)),
        ("changes the dict it is given", lambda state: [by_pattern(state), state.clear()][0]),
    ],
}

test_answers = verdict_test(ANSWERS)
