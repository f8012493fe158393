"""The site pages to test: those in the table of contents, and those Sphinx generates."""

from tests.helpers.this_book import BOOK

PAGES = [*BOOK.pages, "search"]
CHAPTERS = [chapter.name for chapter in BOOK.chapters]
FIGURES = {  # the live figures on each page
    "index": ("steps",),
    "playground": ("norm", "family", "sphere"),
    "start/why-normalize": ("signals",),
    "formula/step-by-step": ("steps",),
    "batch-norm/family": ("family",),
    "formula/geometry": ("sphere",),
    "gradient/jacobian": ("spectrum",),
    "batch-norm/batch-size": ("batch",),
    "transformer/gradients-at-init": ("depth",),
    "lstm/cell": ("memory",),
}

PHONE_ONLY, BOTH = ("mobile",), ("mobile", "desktop")
# The pages that Lighthouse scores on every push, on which devices, and why. All pages share
# one template, one style sheet and one set of scripts, so one page of each kind represents the
# others. A phone is the harder test: Lighthouse simulates a slow processor and a slow network for
# it.
SAMPLE: dict[str, tuple[tuple[str, ...], str]] = {
    "index": (BOTH, "where readers arrive, and the only page with the reading progress"),
    "playground": (BOTH, "runs the most script before it can be used"),
    "formula/from-scratch": (PHONE_ONLY, "the lightest chapter"),
    "gradient/derivation": (BOTH, "the heaviest chapter: the most formulas"),
    "api/experiments": (PHONE_ONLY, "the heaviest page of all"),
    "search": (PHONE_ONLY, "loads the search index, and has its own scripts and layout"),
}
