"""Tests that checkers accept correct answers and name known mistakes."""

import pytest


def expect(verdict, words):
    """Require a verdict that contains these words.

    For a correct answer, start `words` with "Correct."; more words may follow.
    """
    assert verdict.correct == words.startswith("Correct.")
    assert words.removeprefix("Correct.").strip() in verdict.message


def verdict_test(answers):
    """A test that each answer gets its verdict.

    Args:
        answers: for each checker, rows with a few words from the verdict and the arguments for it.
    """
    rows = [
        pytest.param(check, words, answer, id=f"{check.__name__}-{number}")
        for check in answers
        for number, (words, *answer) in enumerate(answers[check])
    ]

    @pytest.mark.parametrize(("check", "words", "answer"), rows)
    def test(check, words, answer) -> None:
        expect(check(*answer), words)

    return test
