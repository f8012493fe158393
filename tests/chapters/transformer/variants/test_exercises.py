"""The checkers for the chapter on variants: each known mistake is named."""

import numpy as np
import torch

from lnbook.chapters.transformer.variants import exercises
from lnbook.transformer import PeriLNBlock, PostLNBlock, PreLNBlock
from tests.helpers.verdicts import verdict_test


def test_logit_bounds_are_attained() -> None:
    """Use a query and a key that point the same way."""
    z = np.tile([1.0, -1.0], 32)
    row = 2 * (z - z.mean()) / z.std()
    unit = z / np.linalg.norm(z)
    assert exercises.check_logit_bounds(row @ row / 8, 10 * unit @ unit).correct


def weight_by_softmax(n, g):
    """Compute it with a query and keys that all lie on one line."""
    return torch.softmax(g * torch.tensor([1.0] + [-1.0] * (n - 1)).double(), 0)[0]


def scale_by_bisection(n, p):
    low, high = 0.0, 50.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if weight_by_softmax(n, middle) > p else (middle, high)
    return high


def test_no_query_gets_more_certain() -> None:
    rng = np.random.default_rng(5)
    g, n = 2.0, 6
    unit = rng.normal(size=(1000, n + 1, 3))
    unit /= np.linalg.norm(unit, axis=-1, keepdims=True)
    e = np.exp(g * (unit[:, 1:] @ unit[:, :1].swapaxes(1, 2)))
    assert (e.max(1) / e.sum(1)).max() < weight_by_softmax(n, g)


def right(x, attention, feed_forward, norm1, norm2):
    x = x + norm1(attention(x))
    return x + norm2(feed_forward(x))


def by_a_block_of_lnbook(block: type):
    """An answer that puts its norms where this lnbook block does."""

    def answer(x, attention, feed_forward, norm1, norm2):
        def torched(function):
            return lambda z: torch.from_numpy(function(z.numpy()))

        module = block(6, 1, 6, dropout=0.0, dtype=torch.float64)
        vars(module).update(feed_forward=torched(feed_forward))
        for name, norm in (("norm1", norm1), ("norm2", norm2)):
            for part in {name, f"{name}_out"} & set(module._modules):
                delattr(module, part)
                vars(module)[part] = torched(norm)
        return module.compute(torch.from_numpy(x), torched(attention)).numpy()

    return answer


def test_rms_xor_accepts_solutions() -> None:
    for W, b, v, c in RIGHT_XOR:  # noqa: N806
        h = torch.from_numpy(exercises.CORNERS) @ torch.tensor(W).double().T + torch.tensor(b)
        s = torch.nn.functional.rms_norm(h, (2,), eps=1e-5) @ torch.tensor(v).double() + c
        assert (s > 0).tolist() == [False, True, True, False]


RIGHT_XOR = (
    ([[1, 1], [0, 0]], [0, 1], [0, 1], -1),
    ([[0, 0], [3, 3]], [2, 0], [1, 0], -0.8),
    ([[1, 1], [1, 1]], [1, -1], [1, -1], -1.5),
)
ANSWERS = {
    exercises.check_logit_bounds: [
        ("Correct.", 32, 10),
        ("each have a gain of 2", 16, 10),
        ("leaves out the gains", 8, 10),
        ("forgot to divide", 256, 10),
        ("has a factor of 64 before you divide", 4, 10),
        ("and not 64", 2048, 10),
        ("That's the bound with L2", 10, 10),
        ("How long is a row of 64 features", 32.000005, 10),
        ("replaces the division", 32, 1.25),
        ("length 1, no matter", 32, 640),
        ("a single g", 32, 100),
        ("at most 1", 32, 10.000005),
    ],
    exercises.check_certain: [
        ("Correct.", weight_by_softmax, scale_by_bisection),
        *(
            (f"largest_weight: {message}", wrong, scale_by_bisection)
            for message, wrong in exercises.WEIGHT_MISTAKES.items()
        ),
        *(
            (f"smallest_scale: {message}", weight_by_softmax, wrong)
            for message, wrong in exercises.SCALE_MISTAKES.items()
        ),
        ("it should be 0.51", lambda n, g: 0.3, scale_by_bisection),
        ("raised ZeroDivisionError", lambda n, g: 1 / 0, scale_by_bisection),
        ("still missing", lambda n, g: None, scale_by_bisection),
    ],
    exercises.check_output_norm: [
        ("Correct.", right),
        *(
            (message, lambda x, *parts, wrong=wrong: wrong(x, parts))
            for message, wrong in exercises.OUTPUT_NORM_MISTAKES.items()
        ),
        ("This is Pre-LN", by_a_block_of_lnbook(PreLNBlock)),
        ("This is Post-LN", by_a_block_of_lnbook(PostLNBlock)),
        ("This normalizes before and after", by_a_block_of_lnbook(PeriLNBlock)),
        ("still missing", None),
        ("returns nothing", lambda *_: None),
        ("should read the stream as it is", lambda x, *parts: right(x, *parts) + 2e-5),
        ("changes its input", lambda x, *parts: right(np.add(x, 1, out=x), *parts)),
    ],
    exercises.check_rms_xor: [
        *(("Correct.", *answer) for answer in RIGHT_XOR),
        ("W still has a '...' in it", [[..., ...], [..., ...]], 0, 0, 0),
        ("All four are the wrong way around", [[1, 1], [0, 0]], [0, 1], [0, -1], 1),
        ("The score is the same at all four", [[1, 1], [0, 0]], [0, 1], [0, 0], 1),
        (  # a score of 0 isn't negative
            "wrong at (-1, -1) and (1, 1).",
            *([[1, 1], [0, 0]], [0, 1], [0, 1], -1 / np.sqrt(2.5 + 1e-5)),
        ),
        ("wrong at (-1, 1) and (1, 1).", [[1, 0], [0, 0]], [0, 1], [1, 0], 0),
        ("wrong at (-1, 1), (1, -1) and (1, 1).", [[1, 1], [0, 0]], [0, 1], [1, 0], -0.5),
    ],
}

test_answers = verdict_test(ANSWERS)
