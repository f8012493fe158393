"""What the checkers share: how they read answers, and what they tell the reader about them."""

import inspect
import warnings

import numpy as np
import pytest
import torch

from lnbook.chapters.shared.checker import (
    NotYet,
    Verdict,
    as_array,
    as_count,
    checker,
    judge,
    run_answer,
    running,
)


@checker
def check_count(count: object = None, *, right: int = 3) -> str:
    """Check a count."""
    if as_count(count, "Your count") != right:
        raise NotYet("Count again.")
    return "It is."


def test_a_checker_returns_verdicts() -> None:
    assert check_count(3) == Verdict(True, "It is.")
    assert check_count(3, right=4) == Verdict(False, "Count again.")
    assert repr(check_count()) == "Not yet. Your count is still missing."


def test_a_checker_hides_no_error_of_its_own() -> None:
    @checker
    def check_nothing() -> str:
        return str(1 / 0)

    with pytest.raises(ZeroDivisionError):
        check_nothing()


def test_help_shows_what_a_checker_takes_and_returns() -> None:
    signature = inspect.signature(check_count)
    assert list(signature.parameters) == ["count", "right"]
    assert signature.return_annotation == "Verdict"
    assert check_count.__doc__ == "Check a count."


@pytest.mark.parametrize(
    "answer", [[1, 2.5], (1, 2.5), np.float32([1, 2.5]), torch.tensor([1, 2.5])]
)
def test_as_array_reads_numbers(answer: object) -> None:
    array = as_array(answer, (2,), "Your row")
    assert array.dtype == np.float64
    assert array.tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("answer", "shape", "message"),
    [
        (None, (2,), "Your answer is still missing."),
        (..., (), "Your answer is still missing."),
        ((1, ...), (2,), "Your answer still has a '...' in it."),
        ([[1, ...], [1, 2]], (2, 2), "should be numbers of shape (2, 2), but is [[1, Ellipsis]"),
        ("many", (), "Your answer should be one number, but is 'many'."),
        ([[1.0], [1.0, 2.0]], (2,), "should be numbers of shape (2,), but is [[1.0], [1.0, 2.0]]."),
        ([1, 2], (), "Your answer should be one number, but has the shape (2,)."),
        ([1, 2, 3], (2,), "should be numbers of shape (2,), but has the shape (3,)."),
        ([[1, 2]], (2,), "should be numbers of shape (2,), but has the shape (1, 2)."),
        (1, (2,), "Your answer should be numbers of shape (2,), but is one number."),
        ([1, np.nan], (2,), "Your answer contains NaN or infinity."),
        (-np.inf, (), "Your answer contains NaN or infinity."),
    ],
)
def test_as_array_says_what_is_wrong(answer: object, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(NotYet) as told:
        as_array(answer, shape, "Your answer")
    assert message in str(told.value)


@pytest.mark.parametrize("answer", [392, 392.0, np.int64(392), np.float32(392), torch.tensor(392)])
def test_as_count_reads_whole_numbers(answer: object) -> None:
    count = as_count(answer, "Your count")
    assert (count, type(count)) == (392, int)


def test_as_count_keeps_every_digit() -> None:
    assert as_count(2**53 + 1, "Your count") == 2**53 + 1


@pytest.mark.parametrize("answer", [0.5, np.nan, np.inf, "many", [1, 2]])
def test_as_count_refuses_the_rest(answer: object) -> None:
    with pytest.raises(NotYet) as told:
        as_count(answer, "Your count")
    assert str(told.value) == f"Your count should be one whole number, but is {answer!r}."


@pytest.mark.parametrize("answer", [None, ...])
def test_as_count_names_a_missing_answer(answer: object) -> None:
    with pytest.raises(NotYet, match="Your count is still missing."):
        as_count(answer, "Your count")


def test_running_tells_of_an_error() -> None:
    with pytest.raises(NotYet) as told, running("Your test"):
        raise KeyError("gamma")
    assert str(told.value) == "Your test raised KeyError: 'gamma'."
    with pytest.raises(NotYet, match="^Count again.$"), running():
        raise NotYet("Count again.")


def test_running_drops_warnings() -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        with running():
            warnings.warn("inside", stacklevel=1)
        run_answer(lambda x: warnings.warn("inside", stacklevel=1) or x, X, context="")
        as_array(np.array(1 + 0j), (), "Your answer")
        warnings.warn("outside", stacklevel=1)
    assert [str(one.message) for one in given] == ["outside"]


X = np.arange(6.0).reshape(2, 3)


def test_run_answer_returns_what_the_function_does() -> None:
    answer = run_answer(lambda x, n: x * n, X, 2, context="")
    assert np.array_equal(answer, 2 * X)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[5], "Your function raised IndexError: index 5 is out of bounds"),
        (lambda x: x[5], " (x had the shape (2, 3))."),
        (lambda x: x - x.mean(-1), "Did you keep the axis with keepdims=True?"),
        (lambda x, y: x, "Your function raised TypeError"),
        (lambda x: None, "Your function returns nothing. Did you forget `return`?"),
    ],
)
def test_run_answer_says_what_is_wrong(function, message: str) -> None:
    with pytest.raises(NotYet) as told:
        run_answer(function, X, context="x had the shape (2, 3)")
    assert message in str(told.value)


@pytest.mark.parametrize("x", [X.copy(), torch.from_numpy(X.copy())])
def test_run_answer_finds_changed_inputs_and_protects_them(x) -> None:
    def doubled(y, _x):
        y *= 2
        return y

    with pytest.raises(NotYet) as told:
        run_answer(doubled, x, x, context="", hint="a new row")
    assert str(told.value) == "Your function changes its input. Compute a new row instead."
    assert np.array_equal(x, X)


ONE = np.array([1.0])
MISTAKES = {
    "Of another shape.": np.array([[2.0]]),
    "The first.": lambda: 2 * ONE,
    "The second.": 2 * ONE,
    "The third.": 3 * ONE,
}


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (2.0, "The first."),
        (3.0, "The third."),
        (3.0001, "None of them."),
        (1.0001, "None of them."),
    ],
)
def test_judge_names_the_first_mistake_that_fits(answer: float, message: str) -> None:
    with pytest.raises(NotYet) as told:
        judge(answer * ONE, ONE, MISTAKES, otherwise="None of them.")
    assert str(told.value) == message


def test_judge_lets_a_right_answer_pass() -> None:
    mistakes = {"The same as the right answer here.": ONE}
    judge(ONE + 1e-10, ONE, mistakes, otherwise="")
    judge(ONE + 0.05, ONE, mistakes, otherwise="", tolerance=0.1)
    judge(1000 * ONE + 1e-8, 1000 * ONE, mistakes, otherwise="", tolerance=1e-7)
    with pytest.raises(NotYet, match="Off."):
        judge(1000 * ONE + 0.001, 1000 * ONE, mistakes, otherwise="Off.", tolerance=1e-7)
