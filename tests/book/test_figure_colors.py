"""The dark twins of figures: each color has a partner that can be read; nothing else changes."""

import base64
import io
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import tinycss2
from PIL import Image

from bookbuild.site import figure_colors
from lnbook.notebook import style

TOKENS = Path(__file__).resolve().parents[2] / "book" / "_static" / "tokens.css"
COLORS = {name: getattr(style, name) for name in style.__all__ if name.isupper()}
COLORS = {name: value for name, value in COLORS.items() if str(value).startswith("#")}

FIGURE = f"""<?xml version="1.0"?>
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 width="331.2pt" height="259.2pt" viewBox="0 0 331.2 259.2">
<metadata>who made it</metadata><!-- a comment -->
<defs><path id="used" d="M 0 0 L 1.23456 -7.891e-05 z"/></defs>
<g id="unused"><use xlink:href="#used" x="1.0049" style="fill: {style.BLUE}; stroke: white"/>
<path d="M 5 5" style="stroke: #1f77b4; stroke-opacity: 0; stroke-width: 2"/></g></svg>"""


def luminance(color: str) -> float:
    rgb = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def tokens(mode: str) -> dict[str, str]:
    for rule in tinycss2.parse_stylesheet(TOKENS.read_text(), True, True):
        if f'"{mode}"' in tinycss2.serialize(rule.prelude):
            return {
                each.name: tinycss2.serialize(each.value).strip()
                for each in tinycss2.parse_declaration_list(rule.content, True, True)
            }
    raise AssertionError(f"tokens.css has no colors for {mode}")


def test_every_color_of_the_style_has_a_partner() -> None:
    assert set(COLORS.values()) <= set(figure_colors.DARK)


@pytest.mark.parametrize("name", ["BLUE", "VERMILION", "GREEN", "PURPLE", "ORANGE", "SKY", "GRAY"])
def test_the_site_has_the_colors_of_the_figures(name: str) -> None:
    light = COLORS[name]
    assert tokens("light")[f"--ln-{name.lower()}"] == light.lower()
    assert tokens("dark")[f"--ln-{name.lower()}"] == figure_colors.DARK[light].lower()


def test_the_pages_have_the_grounds_of_the_figures() -> None:
    for token, light in (("ink", style.INK), ("paper", "#FFFFFF"), ("rule", "#D5D9E0")):
        assert tokens("light")[f"--ln-{token}"] == light.lower()
        assert tokens("dark")[f"--ln-{token}"] == figure_colors.DARK[light].lower()


@pytest.mark.parametrize("name", sorted(COLORS))
def test_a_partner_can_be_read_as_well(name: str) -> None:
    light, dark = COLORS[name], figure_colors.DARK[COLORS[name]]
    wanted = min(3.0, contrast(light, "#FFFFFF"))
    assert contrast(dark, figure_colors.DARK["#FFFFFF"]) >= wanted


def test_text_of_the_pages_can_be_read() -> None:
    for mode in ("light", "dark"):
        colors = tokens(mode)
        for ground in ("--ln-paper", "--ln-surface"):
            for text in ("--ln-ink", "--ln-muted", "--ln-accent", "--ln-accent-2"):
                assert contrast(colors[text], colors[ground]) >= 4.5, (mode, text, ground)


def test_size_is_in_pixels() -> None:
    assert figure_colors.size(FIGURE) == (442, 346)
    with pytest.raises(ValueError, match="width"):
        figure_colors.size('<svg xmlns="http://www.w3.org/2000/svg" width="100%"/>')


def test_smaller_keeps_what_is_seen() -> None:
    small = figure_colors.smaller(FIGURE)
    root = ET.fromstring(small)
    assert len(small) < len(FIGURE)
    assert "who made it" not in small
    assert "comment" not in small
    assert root.get("viewBox") == "0 0 331.2 259.2"
    path = root.find(".//{http://www.w3.org/2000/svg}path")
    assert path is not None
    assert path.attrib == {"id": "used", "d": "M0 0L1.23 0z"}
    assert f"fill:{style.BLUE}" in small
    assert "unused" not in small


def test_dark_changes_colors_alone() -> None:
    dark = figure_colors.dark(FIGURE)
    assert figure_colors.DARK[style.BLUE].lower() in dark
    assert figure_colors.DARK["#FFFFFF"].lower() in dark
    shapes = re.compile(r"#[0-9A-Fa-f]{6}|white")
    assert shapes.sub("", dark) == shapes.sub("", figure_colors.smaller(FIGURE))


def test_a_color_without_a_partner_is_an_error() -> None:
    with pytest.raises(ValueError, match="#123456 has no partner"):
        figure_colors.dark(FIGURE.replace(style.BLUE, "#123456"))
    with pytest.raises(ValueError, match="#112233 has no partner"):
        figure_colors.dark(FIGURE.replace(style.BLUE, "#123"))


def test_a_raster_turns_its_lightness() -> None:
    pixels = np.array([[[255, 255, 255, 255], [0, 114, 178, 255], [153, 199, 224, 255]]], np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="3" height="1"><image xlink:href="data:image/png;base64,{data}"/></svg>'
    )
    found = re.search(r"base64,([^\"]+)", figure_colors.dark(svg))
    assert found is not None
    turned = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))))[0]
    white, blue, pale = (f"#{r:02x}{g:02x}{b:02x}" for r, g, b, _ in turned)
    assert contrast(white, figure_colors.DARK["#FFFFFF"]) < 1.15
    page = figure_colors.DARK["#FFFFFF"]
    assert all(
        abs(int(white[at : at + 2], 16) - int(page[at : at + 2], 16)) <= 2 for at in (1, 3, 5)
    )
    assert luminance(white) < luminance(pale) < luminance(blue)
    assert turned[1][2] > turned[1][0]  # blue is still blue
    assert contrast(pale, figure_colors.DARK[style.INK]) > 4.5  # numbers on pale cells can be read
