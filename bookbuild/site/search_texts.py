"""Collects what the search can find: every section, term, work, exercise and object of a site.

The texts come from the built pages, so readers can find what they can see. Outputs are left out,
and so are hints and solutions, which would spoil exercises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from lxml import html
from lxml.html import HtmlElement

PAGE, SECTION, TERM, SYMBOL = "page", "section", "term", "symbol"
EXERCISE, WORK, OBJECT = "exercise", "work", "api"
NOT_SEARCHED = ("search", "404", "genindex")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
SKIPPED_TAGS = {"script", "style", "svg", "button", "noscript", "input", "label", "nav", "summary"}
SKIPPED_CLASSES = {
    *("headerlink", "section-number", "caption-number", "katex-html", "eqno", "toctree-wrapper"),
    *("cell_output", "solution", "hint", "ln-letters", "ln-map", "ln-tracks", "ln-progress"),
    *("ln-chapter-head", "ln-chapter-end", "ln-cite", "ln-figure-license", "exercise-list"),
    *("ln-answers", "ln-answers-elsewhere"),
    "ln-gallery",  # its captions come from the chapters
}
SUBSCRIPTS = str.maketrans("0123456789+-=aeioruvxjhklmnpst", "₀₁₂₃₄₅₆₇₈₉₊₋₌ₐₑᵢₒᵣᵤᵥₓⱼₕₖₗₘₙₚₛₜ")
SUPERSCRIPTS = str.maketrans("0123456789+-\N{MINUS SIGN}nTd", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻ⁿᵀᵈ")
ACCENTS = {"^": "\u0302", "ˉ": "\u0304", "‾": "\u0304", "~": "\u0303", "˙": "\u0307"}
LABEL = re.compile(r"\s+")
BLOCKS = {"p", "li", "div", "dd", "dt", "td", "th", "tr", "section", "figure", "figcaption"}
# Names in LaTeX: Greek letters, and words in braces such as softmax in \mathrm{softmax}.
GREEK = (
    "alpha beta gamma delta epsilon varepsilon eta theta kappa lambda mu nu xi pi rho sigma tau "
    "phi varphi chi psi omega Gamma Delta Theta Lambda Sigma Phi Psi Omega partial nabla"
)
NAMES = re.compile(
    rf"(?<=\\)(?:{GREEK.replace(' ', '|')})(?![a-zA-Z])|(?<=\{{)[A-Za-z]{{3,}}(?=\}})"
)
IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")


@dataclass
class Found:
    """Something that the search can find.

    Attributes:
        kind: `PAGE`, `SECTION`, `TERM`, `SYMBOL`, `EXERCISE`, `WORK` or `OBJECT`.
        title: what it's called.
        page: the page's path, without `.html`.
        anchor: the id on the page; empty for the page itself.
        text: what readers read there.
        more: words that count but aren't shown: the names in code, and the symbols in formulas.
    """

    kind: str
    title: str
    page: str
    anchor: str
    text: str = ""
    more: dict[str, None] = field(default_factory=dict)
    _parts: list[str] = field(default_factory=list)

    def close(self) -> None:
        """Join all parts into one text."""
        text = LABEL.sub(" ", "".join(self._parts)).strip()
        self.text = re.sub(r" ([.,;:!?)\]])", r"\1", text)


@dataclass
class SearchablePage:
    """A page, with everything on it that the search can find."""

    name: str
    number: str
    title: str
    found: list[Found]


def pages(folder: Path, names: list[str]) -> list[SearchablePage]:
    """The searchable pages among those with these names, in this order."""
    read = (
        read_page(name, (folder / f"{name}.html").read_text(encoding="utf-8"))
        for name in names
        if name not in NOT_SEARCHED
    )
    return [page for page in read if page]


def read_page(name: str, text: str) -> SearchablePage | None:
    """What can be found on a page, or None if it has no article."""
    article = html.document_fromstring(text).find(".//article")
    heading = None if article is None else article.find(".//h1")
    if article is None or heading is None:
        return None
    number = heading.find("./span[@class='section-number']")
    page = Found(PAGE, plain(heading), name, "")
    found = [page]
    _walk(article, page, found)
    for one in found:
        one.close()
    return SearchablePage(
        name, "" if number is None else number.text_content().strip(" ."), page.title, found
    )


def plain(element: HtmlElement) -> str:
    """The text of a short element, such as a heading, without its number and its link."""
    holder = Found(SECTION, "", "", "")
    _walk(element, holder, [])
    holder.close()
    return holder.text


def _walk(element: HtmlElement, into: Found, found: list[Found]) -> None:
    """Add an element's text to the entry it belongs to, and entries inside it to `found`."""
    into._parts.append(element.text or "")
    for child in element:
        if isinstance(child.tag, str):
            _child(child, into, found)
        into._parts.append(child.tail or "")


def _child(child: HtmlElement, into: Found, found: list[Found]) -> None:
    classes = set(child.get("class", "").split())
    if child.tag in SKIPPED_TAGS or classes & SKIPPED_CLASSES or child.tag in HEADINGS:
        return
    if child.tag == "math":
        _formula(child, into)
    elif "cell_input" in classes or "highlight" in classes:
        into.more.update(dict.fromkeys(IDENTIFIER.findall(child.text_content())))
        into._parts.append(" ")
    elif child.tag == "dl" and classes & {"glossary", "py"}:
        _definitions(child, found, TERM if "glossary" in classes else OBJECT, into)
    else:
        _walk(child, _begun(child, classes, into, found), found)
        if child.tag in BLOCKS:
            into._parts.append(" ")


def _begun(child: HtmlElement, classes: set[str], into: Found, found: list[Found]) -> Found:
    """The entry for an element's text: a new one if the element begins one, or else `into`."""
    if child.tag == "section" and child.get("id"):
        heading = next((part for part in child if part.tag in HEADINGS), None)
        if heading is None or heading.tag == "h1":
            return into
        new = Found(SECTION, plain(heading), into.page, child.get("id"))
    elif "exercise" in classes and child.get("id"):
        title = child.find("./p[@class='admonition-title']")
        name = "" if title is None else title.text_content()
        inside = re.search(r"\((.*)\)", name)
        new = Found(EXERCISE, inside[1] if inside else name.strip(), into.page, child.get("id"))
        if title is not None:
            title.drop_tree()
    elif child.tag == "tr" and child.get("id"):  # a row of the table of symbols
        first, *others = child.findall("./td")
        new = Found(SYMBOL, plain(first), into.page, child.get("id"))
        new.more.update(dict.fromkeys(IDENTIFIER.findall(others[0].text_content())))
        for cell in (first, *others[:-1]):
            child.remove(cell)
    elif "citation" in classes and child.get("id"):
        label = child.find("./span[@class='label']")
        if label is not None:
            label.drop_tree()
        new = Found(WORK, _title_of_work(child.text_content()), into.page, child.get("id"))
    else:
        return into
    found.append(new)
    return new


def _title_of_work(entry: str) -> str:
    """The title in an entry of the bibliography: what follows the authors' names."""
    text = " ".join(entry.split())
    # A period after a capital ends an initial; the first other period ends the authors' names.
    parts = re.split(r"(?<![A-Z])\. ", text, maxsplit=2)
    return parts[1].strip(" .") if len(parts) > 1 else text


def _definitions(items: HtmlElement, found: list[Found], kind: str, around: Found) -> None:
    now: Found | None = None
    for part in items:
        if part.tag == "dt" and part.get("id"):
            name = part.get("id") if kind == OBJECT else plain(part)
            now = Found(kind, name.rpartition(".")[2], around.page, part.get("id"))
            if kind == OBJECT:
                now.more[name.rpartition(".")[0].replace(".", " ")] = None
            found.append(now)
        elif part.tag == "dd" and now is not None:
            # For an object, only the first paragraph, which says what it does.
            shown = part if kind == TERM else part.find("./p")
            if shown is not None:
                _walk(shown, now, found)
            for inner in part.findall("./dl") if kind == OBJECT else ():
                if "py" in inner.get("class", "").split():
                    _definitions(inner, found, kind, around)


def _formula(math: HtmlElement, into: Found) -> None:
    """A formula in a sentence is shown as text; a displayed one only adds its symbols."""
    source = math.findtext(".//annotation") or ""
    if math.get("display") == "block":
        into.more.update(dict.fromkeys(NAMES.findall(source)))
        into._parts.append(" … ")
    else:
        into._parts.append(formula_text(math))


def formula_text(element: HtmlElement) -> str:
    """A formula's MathML as a line of text, with accents, indices and fractions."""
    if element.tag == "annotation":
        return ""
    parts = [formula_text(child) for child in element]
    if element.tag in ("mfrac", "msub", "msup", "mover", "munder", "msubsup", "munderover"):
        return _composed(element.tag, parts)
    if element.tag in ("msqrt", "mroot"):
        return f"√{_grouped(''.join(parts))}"
    text = "".join([element.text or "", *parts])
    text = text.translate({0x2061: None, 0x200B: None})
    if element.tag == "mo" and text in ("=", "≈", "≤", "≥", "<", ">", "→", "∈", "⟹"):
        return f" {text} "
    return text


def _composed(tag: str, parts: list[str]) -> str:
    first, second = parts[0], parts[1]
    if tag == "mfrac":
        return f"{_grouped(first)}/{_grouped(second)}"
    if tag == "mover" and second in ACCENTS:
        return first + ACCENTS[second]
    lower = "" if tag in ("msup", "mover") else _lifted(second, SUBSCRIPTS, "_")
    upper = _lifted(parts[-1], SUPERSCRIPTS, "^") if tag not in ("msub", "munder") else ""
    return first + lower + upper


def _lifted(text: str, letters: dict[int, int], sign: str) -> str:
    if text and all(ord(letter) in letters for letter in text):
        return text.translate(letters)
    return sign + _grouped(text)


def _grouped(text: str) -> str:
    letters = list(takewhile(lambda letter: letter.isalnum() or letter == ".", text))
    return text if len(letters) == len(text) or len(text) <= 2 else f"({text})"


def numbered(site: list[SearchablePage]) -> Iterator[list[object]]:
    """Everything that can be found, as the rows that the search reads.

    A row is [kind, the page's place in the list of pages, anchor, title, text, more words].
    """
    for place, page in enumerate(site):
        for one in page.found:
            more = " ".join(one.more)
            if one.title and (one.text or more):
                yield [one.kind, place, one.anchor, one.title, one.text, more]
