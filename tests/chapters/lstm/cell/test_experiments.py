"""The experiments on the cell compute what they claim to, and depend only on the seed."""

import numpy as np
import pytest
import torch

from lnbook.chapters.lstm.cell import experiments
from lnbook.recurrent import LayerNormLSTMCell
from lnbook.reference.lstm import STEPS
from lnbook.training.initialization import initialize_


@pytest.mark.parametrize("variant", STEPS)
def test_carry_against_the_reference(variant: str) -> None:
    """The same run in NumPy, without the feedback."""
    run = experiments.carry(variant, 1.5, seed=3, steps=4)
    rng = np.random.default_rng(3)
    cell = initialize_(
        LayerNormLSTMCell(8, 32, dtype=torch.float64, variant=variant, forget_bias=1.5), rng
    )
    parameters = {name: p.detach().numpy() for name, p in cell.named_parameters()}
    parameters["weight_hh"] = np.zeros((128, 32))
    inputs = rng.normal(size=(4, 8, 8))
    one, other = rng.normal(size=(2, 8, 32))
    h = np.zeros((8, 32))
    states = [(h, one), (h, other)]
    kept = [np.linalg.norm(one - other)]
    for number, x in enumerate(inputs, start=1):
        states = [STEPS[variant](x, *state, parameters, 1e-5) for state in states]
        assert run.size[number] == pytest.approx(states[0][1].std(-1).mean())
        kept.append(np.linalg.norm(states[0][1] - states[1][1]))
    assert run.kept == pytest.approx(np.array(kept) / kept[0])
    normed = [(c - c.mean(-1, keepdims=True)) for _, c in states]
    normed = [c / np.sqrt(c.var(-1, keepdims=True) + 1e-5) for c in normed]
    start = [(c - c.mean(-1, keepdims=True)) for c in (one, other)]
    start = [c / np.sqrt(c.var(-1, keepdims=True) + 1e-5) for c in start]
    expected = np.linalg.norm(normed[0] - normed[1]) / np.linalg.norm(start[0] - start[1])
    assert run.share[-1] == pytest.approx(expected)


def test_carry_keeps_everything_with_an_open_gate() -> None:
    assert experiments.carry("ba", 40.0, steps=10).kept == pytest.approx(np.ones(11))
    assert experiments.carry("carried", 40.0, steps=10).kept[-1] < 0.8


def test_carry_follows_from_its_seed() -> None:
    first, again, other = (experiments.carry("ba", 1.0, seed, steps=2).size for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)
    with pytest.raises(ValueError, match="expected variant"):
        experiments.carry("joint", 1.0)


def test_spread_by_hand() -> None:
    rng = np.random.default_rng(8)
    sequences = torch.from_numpy(rng.normal(size=(3, 6, 2)))
    spread = experiments.spread_over_batch(sequences, gain=0.3, seed=4)
    cell = initialize_(
        LayerNormLSTMCell(2, 32, dtype=torch.float64, variant="none"), np.random.default_rng(4)
    )
    w_x, w_h = cell.weight_ih.detach().numpy(), cell.weight_hh.detach().numpy()

    def batch_norm(z: np.ndarray) -> np.ndarray:
        return 0.3 * (z - z.mean(0)) / np.sqrt(z.var(0) + 1e-5)

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    h = c = np.zeros((6, 32))
    for t, x in enumerate(sequences.numpy()):
        assert spread.from_input[t] == pytest.approx((x @ w_x.T).std(0).mean())
        assert spread.from_hidden[t] == pytest.approx((h @ w_h.T).std(0).mean())
        a = batch_norm(x @ w_x.T) + batch_norm(h @ w_h.T)
        i, f, g, o = np.split(a, 4, axis=1)
        c = sigmoid(f + 1.0) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(batch_norm(c))
        assert spread.cell[t] == pytest.approx(c.std(0).mean())


def test_spread_rejects_other_shapes() -> None:
    with pytest.raises(ValueError, match=r"expected sequences of shape \(L, N, D\)"):
        experiments.spread_over_batch(torch.zeros(3, 4))
