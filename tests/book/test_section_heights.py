"""Sections reserve enough space until the browser lays them out (checked in tests/site, too)."""

import re

import pytest
from lxml import html

from bookbuild.sphinx.section_heights import height, with_heights


def of(text: str) -> float:
    return height(html.fragment_fromstring(text))


def test_only_sections_inside_others_have_an_estimate() -> None:
    page = with_heights(
        '<section id="a"><h1>Title</h1><section id="b"><p>One</p><section id="c"><p>Two</p>'
        "</section></section></section>"
    )
    found = dict(re.findall(r'<section id="(\w)" style="--ln-height:(\d+)rem">', page))
    assert found.keys() == {"b", "c"}
    assert int(found["b"]) > int(found["c"]) > 0


@pytest.mark.parametrize(
    ("short", "tall"),
    [
        ("<p>Text</p>", f"<p>{'Text ' * 50}</p>"),
        ("<pre>1\n</pre>", "<pre>1\n2\n3\n</pre>"),
        ('<div><img height="100"></div>', '<div><img height="300"></div>'),
        ("<table><tr><td>1</td></tr></table>", "<table><tr><td>1<tr><td>2</table>"),
        ('<div class="math"></div>', '<div class="math"><mtr>1</mtr><mtr>2</mtr></div>'),
        ("<div></div>", "<div><input></div>"),
        (
            "<details><summary>A</summary><pre>1</pre></details>",
            "<details open><summary>A</summary><pre>1</pre></details>",
        ),
        ("<div><svg><p>hidden</p></svg></div>", "<div><p>shown</p></div>"),
    ],
)
def test_what_takes_more_room_counts_for_more(short: str, tall: str) -> None:
    assert of(tall) > of(short)
