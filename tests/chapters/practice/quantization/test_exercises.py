"""The chapter's checkers accept correct answers and recognize common mistakes."""

from lnbook.chapters.practice.quantization import exercises


def test_change() -> None:
    assert exercises.check_change(0).correct
    assert "what is it divided by" in exercises.check_change(2).message.lower()
    assert "still missing" in exercises.check_change(...).message


def test_sign() -> None:
    assert exercises.check_sign(-1).correct
    assert "change sign" in exercises.check_sign(1).message
    assert not exercises.check_sign(0).correct
