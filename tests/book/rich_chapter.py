"""A chapter for the small book, with an example of everything a chapter can contain."""

from tests.book.small_book import SmallBook, chapter_text

GLOSSARY = """
mean
  The sum divided by the count.
"""

BIBLIOGRAPHY = """\
@misc{someone2016,
  author = {Someone, Ada and Other, Ben},
  title = {A Work},
  year = {2016},
  url = {https://example.org/a_work}
}
"""

WORKS = """\
---
myst:
  html_meta:
    description: "The works that the chapters of a small book cite, with their authors and years."
---

# Works

```{bibliography}
```
"""

CHAPTER = chapter_text(
    "A rich chapter of a small book, with something of everything that chapters have.",
    """\
# A rich chapter

The {term}`mean` of {cite}`someone2016`, back to [the index](../index.md), on to
[the second](second.md#next-section), and the price of 5 $\\$$ for a_b * c_d.

```{code-cell}
from lnbook import constants

value = 2 * constants.HALF
```

```{code-cell}
:tags: [remove-cell]

from myst_nb import glue

def tell(name, number):
    glue(name, number, display=False)

used_later = value + 1
not_used = value - 1
for name, number in {"one": 1.25, "two": not_used}.items():
    glue(name, number, display=False)
tell("three", 3)
```

## Text and *formulas*

The number is {glue:text}`one:.1f`, the others {glue:text}`two` and {glue:text}`three`.
Equation {eq}`norm` uses $|x|$; {numref}`drawing` and {numref}`words` follow.

```{math}
:label: norm
\\|x\\| = \\sqrt{x^2}
```

```{list-table} Some words
:header-rows: 1
:name: words

* - sign
  - meaning
* - $|x|$ or `a|b`
  - size, as in $\\|x\\|$
```

- first, with

  $$
  y = x
  $$
- second

> A quote.

```{code-cell}
---
tags: [hide-input]
mystnb:
  image:
    alt: "A drawing of one line that rises from left to right."
  figure:
    name: drawing
    caption: "A rising line."
---
from IPython.display import SVG

SVG("<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'>"
    "<path d='M0 40L40 0' stroke='black'/></svg>")
```

```{admonition} Watch out
:class: tip
Read **slowly**.
```

To read more, open [the box](box).

```{deeper-start} Twice the *value*
:label: box
```
A box holds code:

```{code-cell}
print("twice:", 2 * value)
```

```{deeper-end}
```

```{exercise-start} Add
:label: add-one
```
Add 1 to `value`.

```{code-cell}
print("yours:", ...)
```

```{hint}
:class: dropdown
Use `+`.
```
```{exercise-end}
```

```{solution-start} add-one
:class: dropdown
```
Like this:

```{code-cell}
print("ours:", used_later)
```

```{solution-end}
```

```{exercise-start} Think
:label: think
```
Why?
```{exercise-end}
```

```{solution-start} think
:class: dropdown
```
Because.
```{solution-end}
```

## Next section

The end.
""",
)


def add_rich_chapter(small: SmallBook) -> None:
    """Replace the small book's chapter with the rich one, and add a second chapter after it."""
    second = (
        CHAPTER.replace("# A rich chapter", "# The second")
        .replace("**slowly**.", "**slowly**.\n\n**You need first:** [the one before](chapter.md).")
        .replace("A rich chapter of", "The second chapter of")
        .replace("norm", "norm-2")
        .replace("drawing`", "drawing-2`")
        .replace("name: drawing", "name: drawing-2")
        .replace("words", "words-2")
        .replace("add-one", "add-two")
        .replace("(box)", "(box-2)")
        .replace("label: box", "label: box-2")
        .replace("think", "think-2")
        .replace("second.md#next-section", "chapter.md")
    )
    small.chapter.write_text(CHAPTER)
    (small.book.source / "part" / "second.md").write_text(second)
    (small.book.source / "bibliography.md").write_text(WORKS)
    (small.book.source / "references.bib").write_text(BIBLIOGRAPHY)
    index = small.index.read_text().replace("```{glossary}\n", f"```{{glossary}}{GLOSSARY}\n")
    directives = ("course-start", "course-tracks", "reading-progress", "course-map")
    parts = "".join(f"\n```{{{name}}}\n```\n" for name in (*directives, "book-downloads"))
    small.index.write_text(index + parts)
    small.book.toc.write_text(
        "format: jb-book\nroot: index\nparts:\n  - caption: The part\n    numbered: true\n"
        "    chapters:\n      - file: part/chapter\n      - file: part/second\n"
        "  - caption: The rest\n    chapters:\n      - file: bibliography\n"
    )
