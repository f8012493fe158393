"""The experiments agree with PyTorch's own layers and with NumPy."""

import numpy as np
import pytest
import torch
from torch import nn

from lnbook.chapters.shared import encoder
from lnbook.chapters.transformer.gradients_at_init import experiments
from lnbook.transformer import PostLNBlock, xavier_init_
from tests.helpers.encoders import BLOCKS, data, mean_loss


@pytest.mark.parametrize("norm_first", [False, True])
def test_decoder_at_start_agrees_with_pytorch(norm_first: bool) -> None:
    width, depth, seed = 8, 2, 3
    rng = np.random.default_rng(seed)
    x, words, targets = data(rng, width)
    source = torch.tensor(rng.normal(size=(8, 16, width)))
    memory = encoder.make_encoder(BLOCKS[norm_first], depth, "xavier", width=width, rng=rng)
    layer = nn.TransformerDecoderLayer(
        width, 4, 4 * width, 0.0, norm_first=norm_first, batch_first=True, dtype=torch.float64
    )
    final = nn.LayerNorm(width, dtype=torch.float64) if norm_first else None
    decoder = nn.TransformerDecoder(layer, depth, final)
    xavier_init_(decoder, rng=rng)
    mask = nn.Transformer.generate_square_subsequent_mask(16, dtype=torch.float64)
    inputs = torch.tensor(x, requires_grad=True)
    out = decoder(inputs, memory(source), tgt_mask=mask)
    out.retain_grad()
    mean_loss(out, words, targets).backward()
    expected = [layer.linear2.weight.grad.norm().item() for layer in decoder.layers]
    weights, factors = experiments.decoder_at_start(norm_first, depth, seed, width=width)
    assert weights == pytest.approx(np.array(expected), rel=1e-9)
    if norm_first:
        assert factors.shape == (0, len(experiments.DECODER_STEPS))
    else:
        way = inputs.grad.norm().item() / out.grad.norm().item()
        assert factors.shape == (depth, len(experiments.DECODER_STEPS))
        assert factors.prod() == pytest.approx(way)


def test_gradients_vanish_only_in_the_post_ln_decoder() -> None:
    weights, factors = experiments.decoder_at_start(False, 12)
    typical = dict(zip(experiments.DECODER_STEPS, np.exp(np.log(factors).mean(0)), strict=True))
    assert weights[0] < weights[-1] / 10
    assert typical["cross-attention and residual"] == pytest.approx(1.0, abs=0.02)
    assert typical["norm 2"] < 0.8
    for runs in (
        experiments.decoder_at_start(True, 12)[0],
        encoder.at_start(PostLNBlock, 12, "xavier").weights,
    ):
        assert runs[0] > runs[-1] / 2
