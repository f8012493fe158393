"""The training loop, checked against an explicit one; batches, initial values and schedules."""

import io
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lnbook._build import SILENCE
from lnbook.layers import RMSNorm
from lnbook.recurrent import LayerNormLSTM
from lnbook.training import fit, initialize_, minibatches, warm_up
from lnbook.training import progress as progress_module
from lnbook.training.progress import progress
from lnbook.transformer import CausalLanguageModel


def squares(model: nn.Module, batch: tuple[Tensor, Tensor]) -> Tensor:
    return (model(batch[0]) - batch[1]).square().mean()


def task() -> tuple[nn.Module, list[tuple[Tensor, Tensor]]]:
    rng = np.random.default_rng(5)
    model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2)).double()
    batches = [
        (torch.tensor(rng.normal(size=(6, 3))), torch.tensor(rng.normal(size=(6, 2))))
        for _ in range(12)
    ]
    return initialize_(model, rng), batches


def test_fit_is_the_loop_one_would_write() -> None:
    model, batches = task()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    history = fit(model, batches, squares, optimizer, schedule=warm_up(5), clip=0.3)
    theirs, _ = task()
    optimizer = torch.optim.Adam(theirs.parameters(), lr=0.02)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 5))
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        loss = squares(theirs, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 0.3)
        optimizer.step()
        scheduler.step()
        losses.append(loss.item())
    assert history.losses == pytest.approx(losses, rel=1e-12)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], value)


def test_fit_measures_in_evaluation_mode_and_returns_to_training() -> None:
    model, batches = task()
    seen = []

    def look(model: nn.Module) -> float:
        seen.append((model.training, torch.is_grad_enabled()))
        return float(len(seen))

    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = fit(model, batches, squares, optimizer, measure={"look": look}, every=5)
    assert history.steps == [5, 10, 12]
    assert history.measures == {"look": [1.0, 2.0, 3.0]}
    assert seen == [(False, False)] * 3
    assert model.training


def test_fit_measures_the_last_step_once() -> None:
    model, batches = task()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    history = fit(model, batches, squares, optimizer, measure={"one": lambda _: 1.0}, every=4)
    assert history.steps == [4, 8, 12]


def test_fit_stops_before_it_spoils_the_model() -> None:
    model, batches = task()
    batches[3] = (batches[3][0] * torch.inf, batches[3][1])
    model[1].track_running_stats = False
    history = fit(model, batches, squares, torch.optim.SGD(model.parameters(), lr=0.1))
    assert len(history.losses) == 4
    assert history.diverged
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_fit_gives_the_learning_rate_back() -> None:
    model, batches = task()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.125)
    fit(model, batches[:2], squares, optimizer, schedule=warm_up(100))
    assert [group["lr"] for group in optimizer.param_groups] == [0.125]


def test_minibatches_go_through_the_data_in_passes() -> None:
    x, y = torch.arange(10), torch.arange(10) * 2
    rows = list(minibatches(np.random.default_rng(0), x, y, batch_size=3, steps=9))
    assert len(rows) == 9
    assert all(torch.equal(2 * a, b) and len(a) == 3 for a, b in rows)
    passes = [torch.cat([a for a, _ in rows[start : start + 3]]).tolist() for start in (0, 3, 6)]
    assert all(len(set(one)) == 9 for one in passes)
    assert passes[0] != passes[1] != passes[2]


def drawn(model: nn.Module, seed: int = 0) -> dict[str, Tensor]:
    initialize_(model, np.random.default_rng(seed))
    return {name: value.clone() for name, value in model.state_dict().items()}


def test_initialize_does_not_depend_on_what_was_there() -> None:
    models = [CausalLanguageModel(11, 8, 16, 2, 2, dim_feedforward=32) for _ in range(2)]
    first, second = map(drawn, models)
    assert all(torch.equal(first[name], second[name]) for name in first)
    other = drawn(models[0], seed=1)
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_initialize_has_the_distribution_of_pytorch() -> None:
    model = nn.Sequential(nn.Embedding(300, 40), nn.Linear(40, 500), nn.Conv2d(6, 90, 3))
    theirs = {name: value.clone() for name, value in model.state_dict().items()}
    for name, value in drawn(model).items():
        assert value.std().item() == pytest.approx(theirs[name].std().item(), rel=0.15), name
        bound = theirs[name].abs().max()
        assert value.abs().max() < bound * (1.6 if name.startswith("0") else 1.05), name


def test_initialize_leaves_norms_and_recurrent_biases() -> None:
    norms = [nn.LayerNorm(5), nn.LayerNorm((2, 3)), RMSNorm((2, 3)), nn.BatchNorm2d(4)]
    model = nn.ModuleList([*norms, LayerNormLSTM(3, 4, forget_bias=1.5)])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for name, value in drawn(model).items():
        matrix = name.startswith("4.") and value.ndim == 2
        assert torch.equal(value, before[name]) != matrix, name


def test_initialize_draws_a_shared_matrix_once() -> None:
    tied = nn.ModuleList([nn.Linear(4, 6, bias=False), nn.Linear(4, 6, bias=False)])
    tied[1].weight = tied[0].weight
    alone = nn.Linear(4, 6, bias=False)
    drawn(tied)
    drawn(alone)
    assert torch.equal(tied[0].weight, alone.weight)


def test_warm_up_of_no_steps_and_refusal() -> None:
    assert [warm_up(0)(step) for step in (1, 2)] == [1.0, 1.0]
    with pytest.raises(ValueError, match="but got -1"):
        warm_up(-1)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("silent", "shown"), [("1", False), ("0", True)])
def test_progress_shows_in_a_terminal_and_goes_away(
    monkeypatch: pytest.MonkeyPatch, silent: str, shown: bool
) -> None:
    monkeypatch.setenv(SILENCE, silent)
    monkeypatch.setattr(progress_module, "SECONDS_BEFORE_IT_SHOWS", 0.0)
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    assert list(progress(iter([3, 1, 2]), "counting", total=3)) == [3, 1, 2]
    written = terminal.getvalue()
    assert ("counting" in written) == shown
    assert written.rpartition("\r")[0].rpartition("\r")[2].strip() == ""


def test_progress_is_silent_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(SILENCE, "0")
    monkeypatch.setattr(progress_module, "SECONDS_BEFORE_IT_SHOWS", 0.0)
    assert list(progress([1, 2])) == [1, 2]
    assert capsys.readouterr() == ("", "")
