"""The chapter's experiments."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.lstm.beyond import experiments
from lnbook.chapters.lstm.beyond.experiments import HIDDEN, PLACES, RowReader
from lnbook.training import initialize_


def images() -> torch.Tensor:
    return torch.tensor(np.random.default_rng(3).normal(size=(5, 8, 8)))


def randomized(place: str, cell: str) -> RowReader:
    torch.manual_seed(0)  # makes the biases repeatable
    return initialize_(RowReader(place, cell).double(), np.random.default_rng(1))


def normed(y: torch.Tensor) -> torch.Tensor:
    return (y - y.mean(-1, True)) / torch.sqrt(y.var(-1, correction=0, keepdim=True) + 1e-5)


@pytest.mark.parametrize("cell", ["LSTM", "GRU"])
def test_norms_are_where_the_name_says(cell: str) -> None:
    x = images()
    for place in PLACES:
        model = randomized(place, cell)
        first = model.layers[0](x)[0]
        half = torch.cat([normed(first[..., :HIDDEN]), normed(first[..., HIDDEN:])], dim=-1)
        between = {"concatenated": normed(first), "per direction": half}.get(place, first)
        second = model.layers[1](between)[0]
        half = torch.cat([normed(second[..., :HIDDEN]), normed(second[..., HIDDEN:])], dim=-1)
        top = {"concatenated": normed(second), "per direction": half}.get(place, second)
        torch.testing.assert_close(model(x), model.out(top.mean(1)))


def test_factors_make_the_first_outputs_as_large_as_normed_ones() -> None:
    x = images()
    model = randomized("factor", "LSTM").adjust_(x)
    before = list(model.factors)
    y = x
    for number in range(2):
        y = model._layer(number, y)
        assert y.std(correction=0).item() == pytest.approx(1.0)
    assert model.adjust_(x).factors == pytest.approx(before)
    plain = randomized("none", "LSTM")
    y = before[0] * plain.layers[0](x)[0]
    y = before[1] * plain.layers[1](y)[0]
    torch.testing.assert_close(model(x), plain.out(y.mean(1)))


def test_norms_inside_are_those_of_the_library() -> None:
    kinds = {type(layer).__name__ for layer in RowReader("inside", "GRU").layers}
    assert kinds == {"LayerNormGRU"}
    assert isinstance(RowReader("none", "GRU").layers[0], nn.GRU)


def test_all_runs_of_a_seed_start_from_the_same_numbers() -> None:
    for cell, biases in (("LSTM", {0.0, 1.0}), ("GRU", {0.0})):
        models = [experiments.untrained(place, 2, cell) for place in PLACES]
        for model in models:
            parameters = dict(model.named_parameters())
            found = {
                value
                for name, p in parameters.items()
                if "layers" in name and p.ndim == 1 and "weight" not in name
                for value in p.tolist()
            }
            assert found == biases
            for name in ("out.weight", "layers.0.weight_ih_l0", "layers.1.weight_hh_l0_reverse"):
                assert torch.equal(parameters[name], models[0].get_parameter(name))


def test_training_learns_and_repeats() -> None:
    few, more = (experiments.train("concatenated", 0, steps=steps) for steps in (1, 40))
    assert more > few + 0.2
    assert experiments.train("concatenated", 0, steps=40) == more


def test_rows_are_rows_of_the_images() -> None:
    (train_x, _), (test_x, test_y) = experiments.rows_of_digits(0)
    assert train_x.shape == (1197, 8, 8)
    assert len(test_x) == len(test_y) == 450
    assert train_x[..., 0].mean() < 0.1  # the left edge is dark: the last axis is columns
    assert train_x[..., 3].mean() > 0.4


def test_dropout_on_the_state_is_a_power() -> None:
    found = experiments.share_left("state", 0.25, 8)
    np.testing.assert_allclose(found, 0.75 ** np.arange(9), atol=0.02)
    assert (experiments.share_left("candidate", 0.25, 8) == 1.0).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: RowReader("nowhere", "LSTM"), "a place from"),
        (lambda: RowReader("none", "RNN"), "but got 'none' and 'RNN'"),
        (lambda: experiments.share_left("cell", 0.5, 2), "'candidate' or 'state', but got 'cell'"),
    ],
)
def test_bad_input(call, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        call()
