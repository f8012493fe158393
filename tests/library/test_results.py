"""Tables and check marks: what they show, how they align, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from bs4 import BeautifulSoup

from lnbook.notebook import checks, table


def test_a_table_shows_each_kind_of_value() -> None:
    shown = table(
        {
            "a": (0.125, np.float64(2.0), torch.tensor(0.5), 3, "1e-5", True),
            "b": (-0.0001, np.float32(10.25), torch.tensor(7), np.int64(12), "none", np.False_),
        },
        columns=("row", "p", "q", "r", "s", "t", "u"),
        digits=(2, 1, 0, 0, 0, 0),
    )
    assert repr(shown).splitlines() == [
        "row     p     q  r   s  t     u",
        "a    0.12   2.0  0   3  1e-5  ✓",
        "b    0.00  10.2  7  12  none  ✗",
    ]


def test_a_table_is_html_with_scopes_and_escaped_text() -> None:
    page = BeautifulSoup(
        table({"<a>": (1.5, "x & y")}, columns=("n", "v", "w"))._repr_html_(), "html.parser"
    )
    assert [cell.text for cell in page.select("th[scope=col]")] == ["n", "v", "w"]
    assert [cell.text for cell in page.select("th[scope=row]")] == ["<a>"]
    assert [cell.text for cell in page.select("td")] == ["1.50", "x & y"]
    assert [cell.text for cell in page.select("tbody .text-right")] == ["1.50"]


@pytest.mark.parametrize(
    ("rows", "digits", "message"),
    [
        ({}, 2, "expected at least one row, but got none"),
        ({"a": (1, 2, 3)}, 2, "expected 2 values in the row 'a'.* but got 3"),
        ({"a": (1, 2)}, (1,), "expected digits to be one number or 2.* but got 1"),
    ],
)
def test_a_table_refuses_what_does_not_fit(rows: dict, digits: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        table(rows, columns=("row", "a", "b"), digits=digits)


def test_checks_take_booleans_of_every_kind() -> None:
    shown = checks({"python": True, "numpy": np.False_, "torch": torch.tensor(True)})
    assert repr(shown) == "✓ python\n✗ numpy\n✓ torch"
    page = BeautifulSoup(shown._repr_html_(), "html.parser")
    assert [mark["aria-label"] for mark in page.select("li span")] == ["true", "false", "true"]


@pytest.mark.parametrize("value", [1, 0.0, "yes", None, np.array([True, False])])
def test_checks_refuse_what_is_no_boolean(value: object) -> None:
    with pytest.raises(TypeError, match="expected True or False for 'a', but got"):
        checks({"a": value})


def test_checks_refuse_nothing() -> None:
    with pytest.raises(ValueError, match="at least one statement"):
        checks({})
