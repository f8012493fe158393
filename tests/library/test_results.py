"""Tables and check marks: what they show and how they align."""

from __future__ import annotations

import numpy as np
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


def test_checks_take_booleans_of_every_kind() -> None:
    shown = checks({"python": True, "numpy": np.False_, "torch": torch.tensor(True)})
    assert repr(shown) == "✓ python\n✗ numpy\n✓ torch"
    page = BeautifulSoup(shown._repr_html_(), "html.parser")
    assert [mark["aria-label"] for mark in page.select("li span")] == ["true", "false", "true"]
