"""Tests that checkers accept right answers and name known mistakes."""

import pytest


def expect(verdict, words):
    """Require a verdict with these words. Right answers get "Correct.", perhaps with more words."""
    assert verdict.correct == words.startswith("Correct.")
    assert words.removeprefix("Correct.").strip() in verdict.message


def verdict_test(answers):
    """A test that each answer gets its verdict.

    Args:
        answers: for each checker, rows of a few words of the verdict and the arguments that get it.
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
