"""The weight decay experiment: the right parameters decay, and runs can be compared."""

import pytest

from lnbook.chapters.practice.recipes import experiments
from lnbook.chapters.practice.recipes.experiments import train_with_decay


def test_runs_are_repeatable() -> None:
    first = train_with_decay("everything", 0.1, seed=1, steps=60)
    assert first == train_with_decay("everything", 0.1, seed=1, steps=60)
    assert first.steps == (0, 50, 60)
    assert first.gains[0] == 1.0
    assert first.accuracy > 0.5


def test_without_decay_it_does_not_matter_what_decays() -> None:
    runs = [train_with_decay(decayed, 0.0, steps=20) for decayed in experiments.DECAYED]
    assert runs[0] == runs[1] == runs[2]
    assert train_with_decay("nothing", 5.0, steps=20) == runs[0]


def test_only_the_decay_of_everything_shrinks_the_gains() -> None:
    gains = {d: train_with_decay(d, 5.0, steps=50).gains[-1] for d in experiments.DECAYED}
    assert gains["everything"] < 0.7 < 0.99 < gains["matrices"]
    assert gains["matrices"] != gains["nothing"], "the matrices decayed"


def test_unknown_names_are_rejected() -> None:
    with pytest.raises(ValueError, match="one of nothing, matrices, everything, but got 'all'"):
        train_with_decay("all", 0.1)
