"""The language model experiments measure what they claim to."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from lnbook.chapters.shared import language_model
from lnbook.chapters.transformer.training import experiments
from lnbook.transformer import (
    PostLNBlock,
    PreLNBlock,
)
from tests.helpers.tiny_language_model import TEXT, TINY, model


def test_train_measures_on_the_test_text() -> None:
    run = language_model.train(TEXT, steps=5, **TINY)
    x, y = language_model.held_out(TEXT, 6)
    with torch.no_grad():
        loss = functional.cross_entropy(run.model(x).flatten(0, 1), y.flatten()).item()
    assert run.final == pytest.approx(loss)
    assert run.shares[-1] == pytest.approx(language_model.differing_share(run.model, x)[-1])
    windows = {tuple(row) for row in TEXT.test.unfold(0, 6, 1).tolist()}
    assert {tuple(row) for row in x.tolist()} <= windows


def test_differing_share_at_its_extremes() -> None:
    net = model(PostLNBlock)
    x = torch.tensor([[0, 1, 2, 3, 0, 1]])
    shares = language_model.differing_share(net, x)
    hidden = []
    net.encoder.layers[0].register_forward_hook(lambda _m, _i, output: hidden.append(output[0]))
    net(x)
    rows = hidden[0].detach().numpy()
    expected = 1 - (rows.mean(0) ** 2).sum() / (rows**2).sum(1).mean()
    assert shares[0] == pytest.approx(expected)
    assert 0.3 < shares.min() < shares.max() < 1
    with torch.no_grad():
        for table in (net.token_embedding, net.position_embedding):
            table.weight.copy_(table.weight[:1].expand_as(table.weight))
    assert language_model.differing_share(net, x) == pytest.approx([0, 0], abs=1e-12)


def test_gradient_by_block_is_the_derivative() -> None:
    net = model()
    x, y = torch.tensor([[0, 1, 2]]), torch.tensor([[1, 2, 3]])
    found = experiments.gradient_by_block(net, x, y)
    direction = torch.from_numpy(np.random.default_rng(2).normal(size=(1, 3, 8)))
    values = []
    for step in (1e-5, -1e-5):
        hook = net.encoder.layers[1].register_forward_hook(
            lambda _m, _i, output, step=step: output + step * direction
        )
        values.append(functional.cross_entropy(net(x)[0], y[0]).item())
        hook.remove()
    slope = (values[0] - values[1]) / 2e-5
    hidden = []
    hook = net.encoder.layers[1].register_forward_hook(lambda _m, _i, output: hidden.append(output))
    functional.cross_entropy(net(x)[0], y[0]).backward(inputs=list(net.parameters()))
    hook.remove()
    loss = functional.cross_entropy(net.head(net.encoder.norm(hidden[0]))[0], y[0])
    (gradient,) = torch.autograd.grad(loss, hidden)
    assert (gradient * direction).sum().item() == pytest.approx(slope, rel=1e-5)
    assert found[1] == pytest.approx(gradient.norm().item())
    assert not net.encoder.layers[1]._forward_hooks, "hooks are removed"


def test_deviations_match_the_sums() -> None:
    net = model(PostLNBlock)
    x = torch.tensor([[0, 1, 2], [3, 3, 1]])
    found = experiments.deviations(net, x)
    with torch.no_grad():
        stream = net.token_embedding(x) + net.position_embedding.weight[:3]
        for block, (first, second) in zip(net.encoder.layers, found, strict=True):
            total = stream + block.self_attn(stream, is_causal=True)
            assert first == pytest.approx(total.numpy().std(-1).mean())
            middle = block.norm1(total)
            total = middle + block.feed_forward(middle)
            assert second == pytest.approx(total.numpy().std(-1).mean())
            stream = block.norm2(total)
    assert not net.encoder.layers[0].norm1._forward_pre_hooks, "hooks are removed"


def test_first_step_moves_every_parameter_by_the_learning_rate() -> None:
    options = {"width": 8, "batch": 4, "length": 8, "vocab_size": 5}
    post = experiments.first_step(PostLNBlock, 2, 0.003, **options)
    assert post["update"] == pytest.approx(0.003, rel=0.03)
    small = experiments.first_step(PostLNBlock, 2, 3e-6, **options)
    smaller = experiments.first_step(PostLNBlock, 2, 3e-7, **options)
    assert small["output"] / smaller["output"] == pytest.approx(10, rel=0.01)
    assert small["gradient"] == post["gradient"]


def test_depth_amplifies_the_first_step_more_in_post_ln() -> None:
    grown = {
        block: [experiments.first_step(block, n, 1e-5, width=16)["output"] for n in (2, 12)]
        for block in (PostLNBlock, PreLNBlock)
    }
    factors = {block: deep / shallow for block, (shallow, deep) in grown.items()}
    assert factors[PostLNBlock] > 1.5 * factors[PreLNBlock] > 1.5


def test_generate_draws_from_the_scores() -> None:
    net = model()
    with torch.no_grad():
        net.head.weight.zero_()
        net.head.bias.copy_(torch.tensor([0.1, 0.2, 0.3, 0.4]).log())
    long = experiments.generate(net, TEXT, "a", 400, np.random.default_rng(0))
    shares = [long[1:].count(letter) / 400 for letter in "abcd"]
    assert shares == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.08)
    sure = experiments.generate(net, TEXT, "ab", 20, np.random.default_rng(0), temperature=0.01)
    assert sure == "ab" + 20 * "d"


def test_generate_continues_the_prompt() -> None:
    """The model reads the last character, not the first."""
    run = language_model.train(TEXT, steps=150, lr=0.01, **TINY)
    told = experiments.generate(run.model, TEXT, "aaaad", 1, np.random.default_rng(0))
    assert told == "aaaada", "`d` ends a word, and every word begins with `a`"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("", 1), "prompt of characters of the alphabet, but got ''"),
        (("az", 1), "but got 'az'"),
        (("a", -1), "count of at least 0"),
    ],
)
def test_generate_rejects_bad_arguments(arguments: tuple[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        experiments.generate(model(), TEXT, *arguments, np.random.default_rng(0))
    with pytest.raises(ValueError, match="positive temperature"):
        experiments.generate(model(), TEXT, "a", 1, np.random.default_rng(0), temperature=0)
