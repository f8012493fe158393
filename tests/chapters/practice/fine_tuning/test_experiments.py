"""The chapter's experiments."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.practice.fine_tuning import experiments
from lnbook.layers import LayerNorm


def changed(before: nn.Module, after: nn.Module) -> set[str]:
    """Names of the parameters of `before` that are different in `after`."""
    found = dict(after.named_parameters())
    return {
        name
        for name, parameter in before.named_parameters()
        if name in found and not torch.equal(parameter, found[name])
    }


@pytest.mark.parametrize("method", experiments.METHODS)
def test_methods_train_what_they_say(method: str) -> None:
    start = experiments.build(0)
    tuned = experiments.fine_tune(start, method, 0, lr=0.01, steps=2)
    moved = changed(start, tuned.model)
    norms = {
        f"{path}.{name}"
        for path, part in start.named_modules()
        if isinstance(part, LayerNorm)
        for name, _ in part.named_parameters()
    }
    head = {"head.weight", "head.bias"}
    biases = {name for name, _ in start.named_parameters() if name.endswith("bias")}
    everything = {name for name, _ in start.named_parameters()}
    expected = {
        "head": head,
        "norms, no head": norms | head,  # the head isn't trained, but it's new
        "norms": norms | head,
        "biases": biases | head,
        "LoRA": head,
        "LoRA and norms": norms | head,
        "LoRA, rank 3": head,
        "everything": everything,
    }
    if method == "random":
        assert not moved & norms
        assert head < moved
    else:
        assert moved == expected[method]


def test_the_random_choice_moves_as_many_numbers_as_the_norms_have() -> None:
    start = experiments.build(0)
    tuned = experiments.fine_tune(start, "random", 0, lr=0.01, steps=3)
    pairs = dict(start.named_parameters())
    moved = sum(
        int((parameter != pairs[name]).sum())
        for name, parameter in tuned.model.named_parameters()
        if not name.startswith("head")
    )
    norms = sum(p.numel() for p in experiments.norm_parameters(start))
    assert 0.95 * norms < moved <= norms
    assert tuned.parameters == norms + 165


def test_without_a_head_the_new_one_stays() -> None:
    start = experiments.build(0)
    short = experiments.fine_tune(start, "norms, no head", 0, lr=0.01, steps=1)
    long = experiments.fine_tune(start, "norms, no head", 0, lr=0.01, steps=3)
    assert torch.equal(short.model.head.weight, long.model.head.weight)
    assert not torch.equal(short.model.head.weight, start.head.weight)


def test_lora_is_a_low_rank_change_that_starts_at_zero() -> None:
    model, start = experiments.build(0), experiments.build(0)
    x = torch.from_numpy(np.random.default_rng(0).random((3, 64)))
    before = model(x)
    experiments.with_low_rank(model, 2, np.random.default_rng(0))
    assert torch.equal(model(x), before)
    assert sum(p.numel() for p in model.parameters() if p.requires_grad) == 2304
    tuned = experiments.fine_tune(start, "LoRA", 0, lr=0.01, steps=3)
    for name in ("linear1.weight", "linear2.weight", "self_attn.in_proj_weight"):
        path, _, kind = f"encoder.layers.1.{name}".rpartition(".")
        part = tuned.model.get_submodule(path)
        difference = getattr(part, kind) - start.get_parameter(f"{path}.{kind}")
        assert torch.linalg.matrix_rank(difference, rtol=1e-9) == 2


def test_the_tasks_are_separate() -> None:
    for new in (False, True):
        images, classes = experiments._digits(0, "train", new, torch.float64)
        assert set(classes.tolist()) == {0, 1, 2, 3, 4}
        assert len(images) > 500
    old, new = (experiments._digits(0, "test", new, torch.float64) for new in (False, True))
    assert len(old[1]) + len(new[1]) == 450


def test_pretraining_learns_the_old_digits() -> None:
    model = experiments.pretrain(0, steps=60)
    assert experiments.accuracy(model, experiments._digits(0, "test", False, torch.float64)) > 0.6


def test_patches_and_mean_are_those_of_the_docstring() -> None:
    model = experiments.build(0)
    x = torch.from_numpy(np.random.default_rng(0).random((2, 64)))
    image = x.reshape(2, 8, 8)
    patches = [
        image[:, i : i + 2, j : j + 2].reshape(2, 4) for i in (0, 2, 4, 6) for j in (0, 2, 4, 6)
    ]
    tokens = model.read(torch.stack(patches, dim=1)) + model.positions.weight
    torch.testing.assert_close(model(x), model.head(model.encoder(tokens).mean(1)))


def test_no_method_of_an_unknown_name() -> None:
    with pytest.raises(ValueError, match="expected method to be one of head, .* but got 'norm'"):
        experiments.fine_tune(experiments.build(0), "norm", 0, lr=0.01)


def test_methods_train_as_many_numbers_as_they_should() -> None:
    width, hidden, layers, classes = 32, 64, 3, 5
    norms = (2 * layers + 1) * 2 * width
    head = (width + 1) * classes
    ends = [(3 * width, width), (width, width), (hidden, width), (width, hidden)]
    of_rank = layers * sum(rows + columns for rows, columns in ends)
    biases = layers * (sum(rows for rows, _ in ends) + 2 * width) + 2 * width
    start = experiments.build(0)
    expected = {
        "head": head,
        "norms, no head": norms,
        "norms": norms + head,
        "biases": biases + head,
        "random": norms + head,
        "LoRA": 2 * of_rank + head,
        "LoRA and norms": 2 * of_rank + norms + head,
        "LoRA, rank 3": 3 * of_rank + head,
        "everything": sum(p.numel() for p in start.parameters()),
    }
    found = {
        method: experiments.fine_tune(start, method, 0, lr=0.0, steps=1).parameters
        for method in experiments.METHODS
    }
    assert found == expected
