"""The LSTM experiments: the tasks, the measurements over time, and the seeds."""

import numpy as np
import pytest
import torch

from lnbook.chapters.lstm.training import experiments
from lnbook.data.digits import load_digits


def test_adding_tests_on_sequences_it_does_not_train_on() -> None:
    task = experiments.adding(seed=3, length=7)
    batches = list(task.batches(4, 3))
    assert [batch[0].shape for batch in batches] == [(4, 7, 2)] * 3
    assert not torch.equal(batches[0][0], batches[1][0])
    assert torch.equal(batches[0][0], next(task.batches(4, 1))[0]), "each call starts over"
    assert not torch.equal(batches[0][0], task.test[0][:4])
    other = experiments.adding(seed=4, length=7)
    assert not torch.equal(task.test[0], other.test[0])


def test_scores() -> None:
    task = experiments.adding(length=5)
    y = task.test[1]
    assert task.score(y, y) == 0.0
    assert task.score(y + 0.5, y) == pytest.approx(0.25 * 6)
    _, y = experiments.digits().test
    outputs = torch.nn.functional.one_hot(y, 10).double()
    outputs[:45] = 0.0
    outputs[:45, 0] = 1.0
    task = experiments.digits()
    assert task.score(outputs, y) == pytest.approx(0.9 + (y[:45] == 0).sum().item() / 450)
    assert task.loss(outputs, y) == pytest.approx(torch.nn.CrossEntropyLoss()(outputs, y).item())


def test_digits_match_the_data_in_each_form() -> None:
    pixels, binary, constant = (experiments.digits(1, form).test for form in experiments.FORMS)
    digits = load_digits()
    known = {tuple(row) for row in torch.cat([digits.train_x, digits.test_x]).tolist()}
    assert all(tuple(row) in known for row in pixels[0][..., 0].tolist())
    assert torch.equal(binary[0], torch.ceil(pixels[0]))
    assert torch.equal(constant[0][..., :1], pixels[0])
    assert (constant[0][..., 1] == 1).all()
    assert torch.equal(pixels[1], constant[1])
    x, y = next(experiments.digits(1, "with a constant").batches(8, 1))
    assert x.shape == (8, 64, 2)
    assert y.shape == (8,)
    with pytest.raises(ValueError, match="one of .* but got 'pixel'"):
        experiments.digits(form="pixel")


def test_the_model_reads_the_last_step() -> None:
    model = experiments.LastStep(2, 3, 4, "ba")
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(5, 6, 2))).float()
    _, (h, _) = model.lstm(x)
    assert torch.equal(model(x), model.out(h[0]))


def test_set_gain_reaches_all_gains_and_nothing_else() -> None:
    for variant, gains in (("ba", 3), ("per-gate", 2), ("carried", 3), ("none", 0)):
        model = experiments.LastStep(2, 3, 1, variant)
        before = {name: p.clone() for name, p in model.named_parameters()}
        experiments.set_gain_(model, 0.25)
        changed = [n for n, p in model.named_parameters() if not torch.equal(p, before[n])]
        assert len(changed) == gains
        for name in changed:
            assert (model.get_parameter(name) == 0.25).all()
            assert (before[name] == 1.0).all()


@pytest.mark.parametrize("variant", ["none", "ba", "per-gate", "carried"])
def test_norms_match_the_layer(variant: str) -> None:
    """Cut the sequence at a step, and let autograd differentiate with respect to its states."""
    task = experiments.adding(seed=2, length=6)
    model = experiments.train(task, variant, steps=3, hidden=5).model
    found = experiments.norms_over_steps(model, task, examples=3)
    x, y = (part[:3] for part in task.test)
    for cut in (1, 4, 6):
        _, (h, c) = model.lstm(x[:, :cut])
        h, c = (state.detach().requires_grad_() for state in (h, c))
        last = h[0] if cut == 6 else model.lstm(x[:, cut:], (h, c))[0][:, -1]
        loss = (model.out(last) - y).square().sum()
        from_h, from_c = torch.autograd.grad(loss, (h, c), allow_unused=True)
        assert found.hidden[cut - 1] == pytest.approx(_median(h))
        assert found.cell[cut - 1] == pytest.approx(_median(c))
        assert found.hidden_gradient[cut - 1] == pytest.approx(_median(from_h))
        if variant == "none":  # add the path from c through the same step's h
            slope = h / torch.tanh(c) * (1 - torch.tanh(c) ** 2)
            through = from_h * slope + (0 if from_c is None else from_c)
            assert found.cell_gradient[cut - 1] == pytest.approx(_median(through))
    assert found.cell_gradient.shape == (6,)


def _median(states: torch.Tensor) -> float:
    return states[0].detach().norm(dim=1).median().item()


def test_train_follows_from_its_seed_and_compares_like_with_like() -> None:
    task = experiments.adding(length=4)
    starts = {
        variant: experiments.train(task, variant, seed=1, steps=0, hidden=6).model
        for variant in ("none", "ba", "per-gate", "carried")
    }
    matrices = [model.lstm.get_parameter("weight_hh_l0") for model in starts.values()]
    assert all(torch.equal(matrices[0], other) for other in matrices)
    kind = {"steps": 5, "hidden": 6, "every": 2}
    first, again = (experiments.train(task, "ba", seed=1, **kind) for _ in "12")
    assert first.scores == again.scores
    assert first.steps == [2, 4, 5]
    assert first.train_losses != experiments.train(task, "ba", seed=2, **kind).train_losses
    double = experiments.train(task, "ba", seed=1, dtype=torch.float32, **kind)
    assert double.scores == pytest.approx(first.scores, rel=1e-4)
    assert double.model.out.weight.dtype is torch.float32


def test_train_uses_its_options() -> None:
    task = experiments.adding(length=4)
    model = experiments.train(task, "ba", steps=0, gain=0.1, forget_bias=3.0, hidden=2).model
    assert model.lstm.norm_hh_weight_l0.data.tolist() == pytest.approx([0.1] * 8)
    assert model.lstm.bias_gates_l0.data.tolist() == [0, 0, 3, 3, 0, 0, 0, 0]
    plain = experiments.train(task, "none", steps=1, lr=0.0, forget_bias=2.0, hidden=1).model
    assert plain.lstm.bias_ih_l0.data.tolist() == [0, 2, 0, 0]
    steps = [
        experiments.train(task, "none", steps=2, clip=clip).train_losses for clip in (None, 1e-9)
    ]
    assert steps[0][0] == steps[1][0]
    assert steps[0][1] != steps[1][1]


def test_black_pixels_at_the_start_make_the_gradient_of_the_norms_explode() -> None:
    found = {}
    for form in ("pixels", "with a constant"):
        task = experiments.digits(form=form)
        for variant in ("none", "ba"):
            model = experiments.train(task, variant, steps=0, hidden=8).model
            found[form, variant] = experiments.norms_over_steps(model, task).cell_gradient[0]
    assert found.pop(("pixels", "ba")) > 1e6
    assert max(found.values()) < 1e2
    assert np.isfinite(list(found.values())).all()
