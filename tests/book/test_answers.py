"""Exercises answered on the page: the browser gives the same verdicts as the checker."""

import ast
import importlib
import itertools
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from bookbuild.site.answer_rules import answer_rules
from bookbuild.sphinx.answers import _call, form, rules
from lnbook.chapters.shared.checker import as_array, as_count, checker, judge
from tests.helpers.this_book import BOOK, ROOT
from tests.site.node_tools import NODE

SCRIPT = ROOT / "bookbuild" / "sphinx" / "static" / "answers.js"
LEAST = 51  # exercises that can be answered on the page
JUDGE = """
eval(require("fs").readFileSync(process.argv[1], "utf8"));
const asked = JSON.parse(require("fs").readFileSync(0, "utf8"));
const answers = asked.map(([rules, texts]) => judgeAnswers(rules, texts));
console.log(JSON.stringify(answers.map(({correct, message}) => [correct, message])));
"""


def in_browser(asked: list[tuple[dict, dict[str, list[str]]]]) -> list[tuple[bool, str]]:
    run = [NODE, "-e", JUDGE, str(SCRIPT)]
    done = subprocess.run(run, input=json.dumps(asked), capture_output=True, text=True, check=True)
    return [(correct, message) for correct, message in json.loads(done.stdout)]


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Every checker call at the end of a cell, with its chapter."""
    for chapter in BOOK.chapters:
        text = (ROOT / "book" / f"{chapter.name}.md").read_text(encoding="utf-8")
        for part in text.split("```{code-cell}")[1:]:
            if call := _call(part.split("\n```")[0]):
                yield chapter.name, call


def exercises() -> list[tuple[str, ast.Call, dict]]:
    return [(name, call, found) for name, call in calls() if (found := rules(name, call))]


ALL = exercises()
IDS = [f"{name}-{ast.unparse(call.func)}" for name, call, _ in ALL]


Answer = dict[str, Any]


def candidates(found: dict) -> Iterator[Answer]:
    """All kinds of answers: correct ones, every mistake, near misses, and random ones."""
    yield (right := right_answer(found))
    rng = np.random.default_rng(0)
    for step in found["steps"]:
        if "choose" in step:
            yield from (right | {step["choose"]: option} for option in step["replies"])
        elif "letters" in step:
            letters = sorted(letter for letter, _, _ in step["reasons"])
            for count in range(1, len(letters) + 1):
                for chosen in itertools.combinations(letters, count):
                    yield right | {step["letters"]: "".join(chosen)}
        elif "judge" in step:
            yield from (right | other for other in wrong_numbers(found, step, right, rng))


def right_answer(found: dict) -> Answer:
    right: Answer = {}
    for step in found["steps"]:
        if "choose" in step:
            right[step["choose"]] = next(one for one, reply in step["replies"].items() if not reply)
        elif "letters" in step:
            right[step["letters"]] = "".join(one for one, belongs, _ in step["reasons"] if belongs)
        elif "judge" in step:
            right |= parts(found, step, step["expected"])
    return right


def read_steps(found: dict) -> dict[str, dict]:
    return {step["read"]: step for step in found["steps"] if "read" in step}


def parts(found: dict, step: dict, values: list[float]) -> Answer:
    """A step's numbers, split up by field."""
    shapes = [read_steps(found)[name]["shape"] for name in step["judge"]]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    pieces = np.split(np.array(values), ends[:-1])
    return {
        name: piece.reshape(shape)
        for name, piece, shape in zip(step["judge"], pieces, shapes, strict=True)
    }


def wrong_numbers(
    found: dict, step: dict, right: Answer, rng: np.random.Generator
) -> Iterator[Answer]:
    fields = {name: read_steps(found)[name] for name in step["judge"]}
    yield from (parts(found, step, values) for _, values in step["mistakes"])
    for factor in (-1.0, 1.001, 1.05, 2.0, 0.0):
        yield {n: right[n] * factor for n, field in fields.items() if not field.get("whole")}
    for _ in range(3):
        noise = {n: rng.normal(size=field["shape"]) * 10 for n, field in fields.items()}
        yield {n: np.rint(v) if fields[n].get("whole") else v for n, v in noise.items()}


def as_texts(found: dict, answer: Answer) -> dict[str, list[str]]:
    """An answer as the browser reads it from the form."""
    letters = {step["letters"] for step in found["steps"] if "letters" in step}
    return {
        name: (list(value) if name in letters else [value])
        if isinstance(value, str)
        else [repr(float(one)) for one in np.ravel(value)]
        for name, value in answer.items()
    }


def as_arguments(answer: Answer) -> Answer:
    return {n: v if isinstance(v, str) else v.tolist() for n, v in answer.items()}


def test_enough_exercises_can_be_answered_on_the_page() -> None:
    assert len(ALL) >= LEAST


@pytest.mark.parametrize(("name", "call", "found"), ALL, ids=IDS)
def test_the_browser_says_what_the_checker_says(name: str, call: ast.Call, found: dict) -> None:
    module = importlib.import_module(
        f"lnbook.chapters.{name.replace('/', '.').replace('-', '_')}.exercises"
    )
    check = getattr(module, ast.unparse(call.func).removeprefix("exercises."))
    answers = list(candidates(found))
    said = in_browser([(found, as_texts(found, answer)) for answer in answers])
    verdicts = [check(**as_arguments(answer)) for answer in answers]
    for answer, verdict, one in zip(answers, verdicts, said, strict=True):
        assert one == (verdict.correct, verdict.message), answer
    assert {verdict.correct for verdict in verdicts} == {True, False}


ONE = {
    "steps": [
        {"read": "x", "what": "Your x", "shape": []},
        {"judge": ["x"], "expected": [0.1875], "mistakes": [], "otherwise": "No.",
         "tolerance": 1e-9, "relative": False},
    ],
    "praise": "Yes.",
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0.1875", "Yes."),
        (" 3/16 ", "Yes."),
        ("0,1875", "Yes."),
        ("1.875e-1", "Yes."),
        ("\N{MINUS SIGN}0.1875", "No."),
        ("1,875", "No."),  # the comma separates thousands
        ("", "Your x is still missing."),
        ("3/0", 'Your x should be one number, but has "3/0" in it.'),
        ("1/2/3", 'Your x should be one number, but has "1/2/3" in it.'),
        ("three", 'Your x should be one number, but has "three" in it.'),
    ],
)
def test_how_people_write_numbers(text: str, message: str) -> None:
    ((_, said),) = in_browser([(ONE, {"x": [text]})])
    assert said == message


def test_a_whole_number_has_to_be_whole() -> None:
    whole = {"steps": [ONE["steps"][0] | {"whole": True}, ONE["steps"][1]], "praise": "Yes."}
    ((_, said),) = in_browser([(whole, {"x": ["2.5"]})])
    assert said == "Your x should be one whole number, but is 2.5."


CHOICE = {"choose": "a", "name": "a", "replies": {"same": None, "varies": "Why?"}}
LETTERS = {"letters": "x", "reasons": [["a", True, "a is true."], ["b", False, "b is false."]]}


@pytest.mark.parametrize(
    ("step", "name", "given", "message"),
    [
        (CHOICE, "a", [""], "a is still missing."),
        (CHOICE, "a", ["varies"], "a: Why?"),
        (CHOICE, "a", ["same"], "Yes."),
        (LETTERS, "x", [], "Your letters are still missing."),
        (LETTERS, "x", ["a", "b"], "b is false."),
        (LETTERS, "x", ["a"], "Yes."),
    ],
)
def test_choices_and_letters(step: dict, name: str, given: list[str], message: str) -> None:
    ((_, said),) = in_browser([({"steps": [step], "praise": "Yes."}, {name: given})])
    assert said == message


def test_a_row_with_a_blank_in_it() -> None:
    row = {"steps": [{"read": "x", "what": "Your row", "shape": [2]}], "praise": "Yes."}
    ((_, said),) = in_browser([(row, {"x": ["1", ""]})])
    assert said == "Your row still has a blank in it."


def computes(x):
    if as_array(x, (), "x") > 0:
        return "Yes."
    return "No."


def judges_a_result(x):
    judge(np.sort(as_array(x, (2,), "x")), [1.0, 2.0], {}, otherwise="No.")
    return "Yes."


def ignores(x):
    return "Yes."


def answers_in_words(x):
    judge(as_count(x.strip(), "x"), 2, {}, otherwise="No.")
    return "Yes."


@pytest.mark.parametrize("check", [computes, judges_a_result, ignores, answers_in_words])
def test_a_checker_that_does_more_has_no_rules(check) -> None:
    assert answer_rules(checker(check), ["x"]) is None
    assert (as_array.__name__, judge.__name__) == ("as_array", "judge")  # both are restored


def test_a_form_has_a_labeled_field_for_each_number() -> None:
    steps = [
        {"read": "in_", "what": "Your in_", "shape": []},
        {"read": "table", "what": "Your <table>", "shape": [2, 3]},
    ]
    html = form({"steps": steps, "praise": "Yes."})
    assert html.count("<input") == 7
    assert 'aria-label="in"' in html
    assert 'aria-label="table, row 2, number 3 of 3"' in html
    assert "Your <table>" not in html  # it's escaped
