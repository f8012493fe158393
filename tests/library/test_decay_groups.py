"""Groups for weight decay: every trainable parameter is in one of them, and norms never decay."""

import pytest
import torch
from torch import nn

from lnbook.layers import LayerNorm2d, RMSNorm
from lnbook.training import decay_groups


def names(model: nn.Module) -> tuple[set[str], set[str]]:
    found = {id(p): name for name, p in model.named_parameters()}
    decayed, kept = ([found[id(p)] for p in g["params"]] for g in decay_groups(model, 0.1))
    assert len(set(decayed)) == len(decayed)
    assert len(set(kept)) == len(kept)
    return set(decayed), set(kept)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wte = nn.Embedding(7, 4)
        self.ln_1, self.ln_f = nn.LayerNorm(4), RMSNorm(4)
        self.over_two = nn.LayerNorm((3, 4))
        self.conv, self.bn = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
        self.ln2d = LayerNorm2d(3)
        self.head = nn.Linear(4, 7)
        self.temperature = nn.Parameter(torch.tensor(1.0))
        self.class_token = nn.Parameter(torch.zeros(1, 1, 4))


def test_matrices_decay_and_the_rest_does_not() -> None:
    decayed, kept = names(Block())
    assert decayed == {"wte.weight", "conv.weight", "head.weight", "class_token"}
    everything = {name for name, _ in Block().named_parameters()}
    assert kept == everything - decayed


def test_shared_parameters_stand_once_and_frozen_ones_not_at_all() -> None:
    model = Block()
    model.head.weight = model.wte.weight
    model.ln_1.requires_grad_(False)
    decayed, kept = names(model)
    assert decayed == {"wte.weight", "conv.weight", "class_token"}
    assert not any(name.startswith("ln_1") for name in decayed | kept)


def test_an_optimizer_takes_the_groups_and_decays_only_the_first() -> None:
    model = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3))
    optimizer = torch.optim.SGD(decay_groups(model, 0.5), lr=0.1)
    before = [p.detach().clone() for p in model.parameters()]
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    optimizer.step()
    pairs = zip(model.parameters(), before, strict=True)
    ratios = [(p / b).nan_to_num(1.0).mean().item() for p, b in pairs]
    assert ratios == pytest.approx([0.95, 1.0, 1.0, 1.0])
