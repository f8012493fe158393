"""The gallery shows each chapter figure once, and its PNGs look like the SVGs in a browser."""

import io
from pathlib import Path

import lxml.html
import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser

from bookbuild.outputs.cache import read_notebook
from bookbuild.site import figure_colors, figure_files, raster
from bookbuild.site.short_paths import shortened
from tests.site.pages import BOOK, CHAPTERS

LIGHT = "//img[contains(concat(' ', @class, ' '), ' ln-light ')]/@src"


def images(path: Path, inside: str) -> list[str]:
    """The figures inside an element on a page; BeautifulSoup would take seconds for all pages."""
    return [str(source) for source in lxml.html.parse(path).xpath(inside + LIGHT)]


def test_each_figure_of_the_chapters_is_there_once(html: Path) -> None:
    pages = [images(html / f"{name}.html", "//article//figure") for name in CHAPTERS]
    drawn = {source.rpartition("/")[2] for page in pages for source in page}
    gallery = "//*[contains(concat(' ', @class, ' '), ' ln-gallery ')]"
    shown = images(html / "gallery.html", gallery)
    assert len(shown) == len(set(shown)) == len(drawn)
    # A chapter's copy has shorter paths and a different name.
    theirs = {(html / "_images" / name).read_text(encoding="utf-8") for name in drawn}
    assert {shortened((html / name).read_text(encoding="utf-8")) for name in shown} == theirs


FIGURES = [
    ("formula/geometry", "in-space"),
    ("formula/step-by-step", "process"),
    ("batch-norm/family", "family-blocks"),  # hatches
    ("gradient/jacobian", "jacobian-matrix"),  # an image
    ("transformer/training", "training-curves"),
]


@pytest.mark.parametrize(("chapter", "name"), FIGURES)
def test_a_png_looks_like_its_svg_in_a_browser(browser: Browser, chapter: str, name: str) -> None:
    notebook = read_notebook(BOOK.references / f"{chapter}.ipynb")
    assert notebook is not None
    (figure,) = (one for one in figure_files.figures_of(chapter, notebook) if one.name == name)
    svg = figure_colors.shown(figure.svg, "light")
    width, height = figure.size
    page = browser.new_page(viewport={"width": width, "height": height}, device_scale_factor=2)
    page.set_content(f"<body style='margin: 0; background: white'>{svg}</body>")
    theirs = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    page.close()
    ours = Image.open(io.BytesIO(raster.png(svg, figure_files.DPI, "#ffffff")))
    small = width // 3, height // 3  # edges are smoothed in different ways
    theirs, ours = (
        np.asarray(image.resize(small, Image.Resampling.BOX), dtype=float)
        for image in (theirs, ours)
    )
    assert np.abs(theirs - ours).mean() < 2
    assert (np.abs(theirs - ours).max(axis=-1) > 64).mean() < 0.005
