"""The chapter's experiments."""

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from lnbook.chapters.transformer.newer import experiments
from lnbook.data.text import Text
from lnbook.transformer import SelfAttention

AB = torch.tensor([0, 1, 1, 0, 2] * 40)
TEXT = Text("abc", AB, AB)
TOKENS = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 1]])


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape))


def randomize(module: torch.nn.Module) -> None:
    for number, parameter in enumerate(module.parameters()):
        parameter.data = parameter.data + 0.3 * draw(*parameter.shape, seed=number)


def test_derf_is_its_equation_and_learns_all_its_parameters() -> None:
    layer, x = experiments.Derf(6).double(), draw(3, 6)
    randomize(layer)
    found = layer(x)
    for i, j in np.ndindex(3, 6):
        inside = layer.alpha.item() * x[i, j].item() + layer.shift.item()
        expected = layer.weight[j].item() * math.erf(inside) + layer.bias[j].item()
        assert found[i, j].item() == pytest.approx(expected)
    found.sum().backward()
    assert all(parameter.grad.abs().sum() > 0 for parameter in layer.parameters())


def test_a_cap_limits_the_logits_and_a_large_one_changes_nothing() -> None:
    plain = SelfAttention(8, 2).double()
    randomize(plain)
    x = 3 * draw(2, 5, 8)
    for cap, same in ((1e6, True), (0.5, False)):
        capped = experiments.CappedAttention(8, 2, cap=cap).double()
        capped.load_state_dict(plain.state_dict())
        found, weights = capped(x, is_causal=True, need_weights=True)
        assert torch.allclose(found, plain(x, is_causal=True), atol=1e-9) == same
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 5).double())
        if not same:  # with the cap, two logits differ by at most 1
            least, most = weights[..., -1, :].aminmax(dim=-1)
            assert (most / least <= math.e * (1 + 1e-12)).all()  # some reach it, up to rounding


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / x.square().sum(-1, keepdim=True).sqrt()


def test_a_sphere_block_is_its_equations() -> None:
    block = experiments.SphereBlock(8, 2, 16, activation="gelu", dtype=torch.float64)
    randomize(block)
    x = draw(3, 4, 8)
    h = unit(x)
    q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2)
               for part in (h @ block.self_attn.in_proj_weight.T).chunk(3, -1))  # fmt: skip
    s = (block.self_attn.s_qk.values * 8**0.5).view(2, 1, 4)
    y = scaled_dot_product_attention(s * unit(q), s * unit(k), v, scale=2.0, is_causal=True)
    y = y.transpose(1, 2).flatten(2) @ block.self_attn.out_proj.weight.T
    alpha = (0.05 * 8**0.5 * block.alpha1.values).abs()
    h = unit((1 - alpha) * h + alpha * unit(y))
    y = torch.nn.functional.gelu(block.s_u.values * 8**0.5 * (h @ block.linear1.weight.T))
    alpha = (0.05 * 8**0.5 * block.alpha2.values).abs()
    h = unit((1 - alpha) * h + alpha * unit(y @ block.linear2.weight.T))
    torch.testing.assert_close(block(x, is_causal=True), h)


def test_ngpt_starts_as_in_its_paper_and_stays_on_the_sphere() -> None:
    model = experiments.build("nGPT", 3, seed=1, layers=2)
    for block in model.encoder.layers:
        torch.testing.assert_close(block.alpha1(), torch.full((32,), 0.05).double())
        torch.testing.assert_close(block.self_attn.s_qk(), torch.ones(32).double())
    torch.testing.assert_close(model.s_z(), torch.ones(3).double())
    steps = experiments.build("nGPT, larger steps", 3, 1, 1).encoder.layers[0]
    torch.testing.assert_close(steps.alpha2(), torch.full((32,), 0.25).double())
    for design, stays in (("nGPT", True), ("nGPT, free weights", False)):
        trained = experiments.train(TEXT, design, layers=1, steps=3, lr=0.03).model
        lengths = [
            trained.head.weight.norm(dim=1),
            trained.token_embedding.weight.norm(dim=1),
            trained.encoder.layers[0].self_attn.in_proj_weight.norm(dim=1),
            trained.encoder.layers[0].self_attn.out_proj.weight.norm(dim=0),
            trained.encoder.layers[0].linear1.weight.norm(dim=1),
            trained.encoder.layers[0].linear2.weight.norm(dim=0),
        ]
        for length in lengths:
            assert torch.allclose(length, torch.ones_like(length), atol=1e-9) == stays


@pytest.mark.parametrize(
    ("design", "factors"),
    [
        ("scaled norms", [1, 2**-0.5, 3**-0.5]),
        ("scaled gains", [1, 2**-0.5, 3**-0.5]),
        ("constant scale", [6 ** (-1 / 6)] * 3),
    ],
)
def test_what_the_branches_read(design: str, factors: list[float]) -> None:
    plain, changed = (experiments.build(name, 9, 0, layers=3) for name in ("Pre-LN", design))
    x = draw(2, 4, 32)
    layers = plain.encoder.layers, changed.encoder.layers
    for one, other, factor in zip(*layers, factors, strict=True):
        for name in ("norm1", "norm2"):
            torch.testing.assert_close(getattr(other, name)(x), factor * getattr(one, name)(x))
    torch.testing.assert_close(changed.encoder.norm(x), plain.encoder.norm(x))


def test_scaled_weights_shrink_what_the_branches_write() -> None:
    plain, changed = (
        experiments.build(name, 9, 0, layers=2).state_dict()
        for name in ("Pre-LN", "scaled weights")
    )
    for name, weight in plain.items():
        writes = name.endswith(("out_proj.weight", "linear2.weight"))
        torch.testing.assert_close(changed[name], weight / 2 if writes else weight)


def test_one_thing_changes_at_a_time() -> None:
    """All designs except nGPT start from the same matrices."""
    plain = experiments.build("Pre-LN", 9, 3, 2).state_dict()
    for design in ("QK-norm", "soft cap", "DyT", "Derf, 1"):
        found = experiments.build(design, 9, 3, 2).state_dict()
        shared = [name for name, value in found.items() if value.ndim == 2]
        assert len(shared) == sum(value.ndim == 2 for value in plain.values())
        assert all(torch.equal(found[name], plain[name]) for name in shared)
        assert {name.split(".")[0] for name in found} == {name.split(".")[0] for name in plain}


def test_training_options() -> None:
    run = experiments.train(TEXT, "Pre-LN", layers=1, steps=8, every=4, bfloat16=True)
    assert run.steps == [4, 8]
    assert len(run.losses) == len(run.fitted) == len(run.logits) == 2
    matrix = run.model.head.weight
    assert torch.equal(matrix, matrix.bfloat16().double())
    assert not torch.equal(run.model.head.bias, run.model.head.bias.bfloat16().double())
    one, two = (
        experiments.train(TEXT, "Pre-LN", layers=1, steps=8, decay=decay).final
        for decay in (False, True)
    )
    assert one != two
    assert run.fitted[-1] == pytest.approx(experiments.loss_on(run.model, AB))


def test_a_block_that_is_taken_out_does_nothing() -> None:
    model = experiments.build("Pre-LN", 9, 0, layers=3)
    idle = model.encoder.layers[1]
    with torch.no_grad():
        for linear in (idle.self_attn.out_proj, idle.linear2):
            linear.weight.zero_()
            linear.bias.zero_()
    losses = experiments.block_losses(model, (TOKENS, TOKENS))
    assert losses[1] == pytest.approx(0.0, abs=1e-12)
    assert np.abs(losses[[0, 2]]).min() > 1e-6
    batch = (TOKENS, TOKENS)
    assert experiments.loss_without(model, batch, [0, 1]) == pytest.approx(losses[0])
    assert abs(experiments.loss_without(model, batch, [0, 2]) - losses[0]) > 1e-6
    assert len(model.encoder.layers) == 3
    sizes = experiments.stream_sizes(model, TOKENS)
    assert sizes[1] == pytest.approx(sizes[0])


def test_logits() -> None:
    model = experiments.build("Pre-LN", 9, 0, layers=1)
    attention, x = model.encoder.layers[0].self_attn, TOKENS
    read = model.encoder.layers[0].norm1(
        model.token_embedding(x) + model.position_embedding.weight[:4]
    )
    q, k, _ = (read @ attention.in_proj_weight.T + attention.in_proj_bias).chunk(3, -1)
    heads = [part.unflatten(-1, (4, 8)).transpose(1, 2) for part in (q, k)]
    expected = (heads[0] @ heads[1].transpose(-2, -1)).abs().max().item() / 8**0.5
    assert experiments.largest_logit(model, x) == pytest.approx(expected)
    sphere = experiments.build("nGPT", 9, 0, layers=2)
    assert experiments.largest_logit(sphere, x) <= 8**0.5 + 1e-9


def test_no_design_of_an_unknown_name() -> None:
    with pytest.raises(ValueError, match="expected design to be one of Pre-LN, .* 'Post-LN'"):
        experiments.build("Post-LN", 9, 0)


def test_a_cap_takes_no_masks() -> None:
    attention = experiments.CappedAttention(8, 2, cap=1.0)
    with pytest.raises(ValueError, match="no mask other than is_causal"):
        attention(torch.zeros(1, 3, 8), torch.zeros(3, 3, dtype=torch.bool))
