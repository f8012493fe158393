"""Hidden cells keep what later cells need, and drop what only the site needs."""

import pytest

from bookbuild.notebooks.plain_code import imported, undefined, without_glue

HIDDEN, SHOWN = True, False


def left(hidden: str, shown: str = "print(a)") -> str:
    return without_glue([("import x", SHOWN), (hidden, HIDDEN), (shown, SHOWN)])[1]


@pytest.mark.parametrize(
    ("hidden", "expected"),
    [
        ("from myst_nb import glue\nglue('n', 1)", ""),
        ("b = 1\nglue('n', b)", ""),
        ("a = 1  # why\nb = 2", "a = 1"),
        ("c = 1\na = c", "c = 1\na = c"),
        ("for a in y:\n    glue('n', a)", ""),
        ("for i in y:\n    a = i\n    glue('n', a)", "for i in y:\n    a = i"),
        ("def f(n):\n    b = 2\n    glue(n, b)\nf('n')", ""),
        ("a = [i for i in range(3)]\ni = 5", "a = [i for i in range(3)]"),
        ("b = rng.normal()", "b = rng.normal()"),
        ("a[0] = 1", "a[0] = 1"),
        ("a.b = 1", "a.b = 1"),
        ("assert a, 'right'", ""),
        ("import a.b", "import a.b"),
        ("show(1)", "show(1)"),
    ],
)
def test_what_is_left_of_a_hidden_cell(hidden: str, expected: str) -> None:
    assert left(hidden) == expected


def test_names_in_functions_count_and_their_own_do_not() -> None:
    assert left("a = 1\nb = 2", "def f(b):\n    return a + b") == "a = 1"


def test_shown_cells_stay_as_they_are() -> None:
    source = "%time x\nglue = 1  #  odd   spaces"
    assert without_glue([(source, SHOWN)]) == [source]


def test_undefined_names() -> None:
    cells = ["def f():\n    return later + never", "print(soon)", "soon = later = 1\nlen([f])"]
    assert undefined(cells) == ["never", "soon"]


def test_imported_packages() -> None:
    assert imported(["import os.path, numpy as np", "from sklearn.a import b"]) == {
        "numpy",
        "sklearn",
    }
