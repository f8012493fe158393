"""The multiple-choice questions on the teacher's page: format, answers, and the page itself."""

import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace
from torch import nn

from bookbuild.book import Book
from bookbuild.errors import BookError
from bookbuild.sphinx import quiz

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "book" / "teach" / "questions.toml"
QUESTIONS = {question.name: question for question in quiz.read(FILE, FILE.name)}


def right(name: str) -> str:
    return next(option.says for option in QUESTIONS[name].options if option.right)


def test_there_are_twenty() -> None:
    assert len(QUESTIONS) == 20


def test_every_question_names_a_chapter(book: Book) -> None:
    chapters = {chapter.name for chapter in book.chapters}
    assert {question.chapter for question in QUESTIONS.values()} <= chapters


def test_the_place_of_the_right_option_gives_nothing_away() -> None:
    places = Counter(
        [option.right for option in question.options].index(True) for question in QUESTIONS.values()
    )
    assert min(places[place] for place in range(quiz.OPTIONS)) >= 4


def test_an_explanation_has_a_reason() -> None:
    for question in QUESTIONS.values():
        for option in question.options:
            assert len(option.why.split()) >= 7, (question.name, option.why)
            assert option.why.endswith((".", "!"))


# Answers that a program can compute


def norm(row: list[float], *, eps: float = 0.0) -> torch.Tensor:
    x = torch.tensor(row, dtype=torch.float64)
    return nn.functional.layer_norm(x, x.shape, eps=eps)


def count_of_means() -> str:
    x = torch.zeros(16, 50, 512)
    return str(x.numel() // nn.LayerNorm(512).weight.numel())


def same_output() -> str:
    rows = {
        "$(10, 20, 30, 40)$": [10, 20, 30, 40],
        "$(-1, -2, -3, -4)$": [-1, -2, -3, -4],
        "$(4, 3, 2, 1)$": [4, 3, 2, 1],
        "$(1, 4, 9, 16)$": [1, 4, 9, 16],
    }
    (found,) = (says for says, row in rows.items() if torch.allclose(norm(row), norm([1, 2, 3, 4])))
    return found


def variance_left() -> str:
    size = 1e-5**0.5
    left = norm([size, -size], eps=1e-5).var(correction=0).item()
    return "$1/2$" if abs(left - 0.5) < 1e-12 else str(left)


def gradient_of_sum() -> str:
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    nn.LayerNorm(5, dtype=torch.float64)(x).sum().backward()
    assert x.grad is not None
    return "Zero everywhere" if x.grad.abs().max() < 1e-12 else "not zero"


def gradient_of_gamma() -> str:
    layer, x, dy = nn.LayerNorm(64), torch.randn(8, 20, 64), torch.randn(8, 20, 64)
    layer(x).backward(dy)
    assert layer.weight.grad is not None
    total = (nn.functional.layer_norm(x, (64,)) * dy).sum((0, 1))
    assert torch.allclose(layer.weight.grad, total, atol=1e-4)
    shape = ", ".join(map(str, layer.weight.grad.shape)) + ","
    sum_of = "$\\hat{x}\\, \\partial \\mathcal{L} / \\partial y$"
    return f"The sum of {sum_of} over the {8 * 20} tokens, of shape ({shape})"


def mixes_examples() -> str:
    x = torch.randn(4, 32, 7, 7)
    other = torch.cat([x[:1], torch.randn(3, 32, 7, 7)])
    layers = {
        "`nn.GroupNorm(4, 32)`": nn.GroupNorm(4, 32),
        "`nn.BatchNorm2d(32)`": nn.BatchNorm2d(32),
        "`nn.LayerNorm((32, 7, 7))`": nn.LayerNorm((32, 7, 7)),
        "`nn.InstanceNorm2d(32)`": nn.InstanceNorm2d(32),
    }
    (found,) = (
        says for says, layer in layers.items() if not torch.equal(layer(x)[0], layer(other)[0])
    )
    return found


def one_mean_per_image() -> str:
    layers = {
        "`nn.GroupNorm(1, 32)`": nn.GroupNorm(1, 32),
        "`nn.LayerNorm(32)`": nn.LayerNorm(32),
        "`nn.LayerNorm((32, 7, 7))`": nn.LayerNorm((32, 7, 7)),
        "`nn.InstanceNorm2d(32)`": nn.InstanceNorm2d(32),
    }

    def fits(layer: nn.Module) -> bool:
        for size in (7, 9):
            x = torch.randn(16, 32, size, size)
            try:
                y = layer(x)
            except RuntimeError:
                return False
            wanted = nn.functional.layer_norm(x, x.shape[1:])
            if not torch.allclose(y, wanted, atol=1e-4):
                return False
        return True

    (found,) = (says for says, layer in layers.items() if fits(layer))
    return found


def rms_of_constant() -> str:
    y = nn.functional.rms_norm(torch.full((4,), 3.0), (4,), eps=0.0)
    return f"$({', '.join(f'{value:.0f}' for value in y.tolist())})$"


def gradient_of_larger_weights() -> str:
    weight, x = torch.randn(4, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    target = torch.randn(5, 4, dtype=torch.float64)

    def loss_and_gradient(w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        w = w.clone().requires_grad_()
        loss = (nn.functional.layer_norm(x @ w.T, (4,), eps=0.0) * target).sum()
        return loss.detach(), torch.autograd.grad(loss, w)[0]

    (one, before), (two, after) = loss_and_gradient(weight), loss_and_gradient(2 * weight)
    assert torch.allclose(one, two)
    assert torch.allclose(before, 2 * after)
    return "The loss stays the same, and the gradient is halved."


def decayed() -> str:
    gain = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.AdamW([gain], lr=1.0, weight_decay=0.5)
    for _ in range(30):
        gain.grad = torch.zeros(1)
        optimizer.step()
    return "Toward 0" if 0 <= gain.item() < 1e-6 else str(gain.item())


def squares_in_half() -> str:
    x = torch.tensor([300.0, -300.0] * 4, dtype=torch.float16)
    return "Infinity" if (x * x).mean() == torch.inf else "finite"


def padded() -> str:
    layer = nn.LayerNorm(4)
    nn.init.normal_(layer.bias)
    return "$\\beta$" if torch.equal(layer(torch.zeros(4)), layer.bias) else "not beta"


COMPUTED: dict[str, Callable[[], str]] = {
    "axes": count_of_means,
    "factor": same_output,
    "unit-variance": variance_left,
    "loss-of-sums": gradient_of_sum,
    "gamma-gradient": gradient_of_gamma,
    "other-examples": mixes_examples,
    "one-mean-per-image": one_mean_per_image,
    "rms-of-constant": rms_of_constant,
    "scale-of-weights": gradient_of_larger_weights,
    "decay-of-gamma": decayed,
    "float16": squares_in_half,
    "padding": padded,
}


@pytest.mark.parametrize("name", COMPUTED)
def test_the_right_option_is_what_a_program_finds(name: str) -> None:
    torch.manual_seed(0)
    assert COMPUTED[name]() == right(name)


def test_what_the_other_answers_rest_on() -> None:
    layer = nn.LayerNorm(4)
    assert list(layer.state_dict()) == ["weight", "bias"], "no epsilon, no statistics"
    x = torch.randn(3, 4)
    assert torch.equal(layer(x), layer.eval()(x))
    block = nn.TransformerEncoderLayer(8, 2, norm_first=True)
    assert nn.TransformerEncoder(block, 2, enable_nested_tensor=False).norm is None
    shrunk = ((0.01**2 + 1e-12) / (0.01**2 + 1e-5)) ** 0.5
    assert 0.95 < shrunk < 0.96, "almost 5 percent"
    row = norm([500.0, *[0.1 * n for n in range(9)]])
    assert row[0] == pytest.approx(3, abs=0.01)
    assert row[1:].mean() == pytest.approx(-1 / 3, abs=0.01)


# Format


def questions(**changes: object) -> str:
    """A file with a single question; `changes` replace some of its values."""
    options = changes.pop("options", None) or [
        {"says": "1", "why": "It is.", "right": True},
        *({"says": says, "why": "It isn't."} for says in "234"),
    ]
    values = {"name": "a", "chapter": "b", "finds": "c", "asks": "d", **changes}
    lines = ["[[questions]]", *(f"{key} = {value!r}" for key, value in values.items())]
    for option in options:  # type: ignore[attr-defined]
        lines.append("[[questions.options]]")
        lines += [f"{k} = {str(v).lower() if v is True else repr(v)}" for k, v in option.items()]
    return "\n".join(lines).replace('"It isn\'t."', "'It is not.'") + "\n"


RIGHT, WRONG = {"says": "1", "why": "It is.", "right": True}, {"says": "2", "why": "It is not."}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"asks": " "}, "missing or empty: .'asks'."),
        ({"hint": "x"}, "unknown: .'hint'."),
        ({"options": [RIGHT, WRONG, {**WRONG, "says": "3"}]}, "expected 4 different options"),
        ({"options": [RIGHT, WRONG, WRONG, {**WRONG, "says": "3"}]}, "expected 4 different"),
        ({"options": [{**WRONG, "says": says} for says in "1234"]}, "0 options are right"),
        ({"options": [{**RIGHT, "says": says} for says in "1234"]}, "4 options are right"),
        (
            {"options": [RIGHT, WRONG, {**WRONG, "says": "3"}, {"says": "4", "why": ""}]},
            "an option has no explanation",
        ),
    ],
)
def test_a_malformed_question(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    path = tmp_path / "questions.toml"
    path.write_text(questions(**changes))
    assert tomllib.loads(path.read_text()), "valid TOML"
    with pytest.raises(BookError, match=message):
        quiz.read(path, "questions.toml")


def test_two_questions_with_one_name(tmp_path: Path) -> None:
    path = tmp_path / "questions.toml"
    path.write_text(questions() + questions())
    with pytest.raises(BookError, match="another question with this name"):
        quiz.read(path, "questions.toml")


def test_a_page_folds_each_verdict(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    text = questions(asks="Is it `one`, or $x$?", chapter="other")
    (pages / "questions.toml").write_text(text.replace("says = '4'", "says = '[4](other.md)'"))
    (pages / "index.md").write_text("# Quiz\n\n```{quiz} questions.toml\n```\n")
    (pages / "other.md").write_text("---\norphan: true\n---\n\n# Other\n")
    settings = {
        "extensions": ["myst_parser", "bookbuild.sphinx.quiz"],
        "myst_enable_extensions": ["dollarmath"],
    }
    out = tmp_path / "html"
    with docutils_namespace():
        Sphinx(
            str(pages), None, str(out), str(out / "trees"), "html", settings, status=None
        ).build()
    page = BeautifulSoup((out / "index.html").read_text(), "html.parser")
    (question,) = page.select("ol.ln-quiz > li#question-a")
    options = question.select("ol.ln-options > li > details.ln-option")
    assert [option.select_one("summary").get_text() for option in options] == [
        f"Option {letter}: {number}" for letter, number in zip("ABCD", "1234", strict=True)
    ]  # type: ignore[union-attr]
    assert [option.select_one("p").get_text() for option in options] == [  # type: ignore[union-attr]
        "Right. It is.",
        *["No. It is not."] * 3,
    ]
    assert question.select_one("details.ln-finds a")["href"] == "other.html"  # type: ignore[index]
    assert not any(fold.has_attr("open") for fold in page.select("details"))
    assert not page.select("summary a"), "one click can't both follow a link and open the fold"
