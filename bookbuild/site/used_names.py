"""Collects the tags, classes, ids and attributes in built pages, and the formulas' characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from lxml import html

_WORD = re.compile(r"[A-Za-z_][\w-]*")
VARIABLE = re.compile(r"--[\w-]+")


@dataclass
class Vocabulary:
    """The names used in pages; a name in a script may be any kind, so it counts as every kind."""

    tags: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    variables: set[str] = field(default_factory=set)
    formula_letters: set[str] = field(default_factory=set)
    bold_letters: set[str] = field(default_factory=set)  # the bold ones among them

    def add_page(self, text: str) -> None:
        """Add the names that a page uses."""
        page = html.document_fromstring(text)
        values: set[str] = set()  # values of `class`, most of which occur thousands of times
        for element in page.iter("*"):
            self.tags.add(element.tag)
            for name, value in element.attrib.items():
                self.attributes.add(name)
                if name == "class":
                    values.add(value)
                elif name == "id":
                    self.ids.add(value)
                elif name == "style" and "--" in value:
                    self.variables |= set(VARIABLE.findall(value))
        self.classes.update(*(value.split() for value in values))
        for formula in page.iterfind(".//span[@class='katex-html']"):
            self.formula_letters.update(formula.text_content())
            for bold in formula.xpath(".//span[contains(@class, 'bf')]"):
                self.bold_letters.update(bold.text_content())
        for script in page.iterfind(".//script"):
            self.add_script(script.text or "")

    def add_script(self, text: str) -> None:
        """Add every word in a script, or in a style sheet for single pages: any may be used."""
        words = set(_WORD.findall(text))
        self.tags |= {word.lower() for word in words}
        self.classes |= words
        self.ids |= words
        self.attributes |= words
        self.variables |= set(VARIABLE.findall(text))


def of(pages: Iterable[str], scripts: Iterable[str]) -> Vocabulary:
    """The names that all pages and scripts use."""
    vocabulary = Vocabulary()
    for page in pages:
        vocabulary.add_page(page)
    for script in scripts:
        vocabulary.add_script(script)
    return vocabulary
