"""Sphinx extension: a list of all the book's exercises, with links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx_exercise.nodes import exercise_subtitle


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the `exercise-list` directive, which is filled in after all pages have been read."""
    app.add_node(Place)
    app.add_directive("exercise-list", ExerciseList)
    app.connect("env-updated", _pages)
    app.connect("doctree-resolved", _fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class Place(nodes.General, nodes.Element):  # type: ignore[misc]
    """A placeholder for the list."""


class ExerciseList(SphinxDirective):
    """`exercise-list`: lists every exercise, chapter by chapter."""

    def run(self) -> list[nodes.Node]:
        """Insert a placeholder, and remember its page."""
        self.env.metadata[self.env.docname]["exercise-list"] = "yes"
        return [Place()]


def _pages(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Rewrite the list whenever anything has changed: it depends on every chapter."""
    del app
    return [name for name, metadata in env.metadata.items() if "exercise-list" in metadata]


def _fill(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for place in list(doctree.findall(Place)):
        found = list(_exercises(app.env))
        if not found:
            raise ValueError(f"{docname}: exercise-list found no exercises")
        place.replace_self(_lists(app, docname, found))


def _exercises(env: BuildEnvironment) -> Iterator[tuple[str, str, str]]:
    """The page, label and title of each exercise, in book order."""
    registry = getattr(env, "sphinx_exercise_registry", {})
    order = {name: place for place, name in enumerate(_in_order(env))}
    listed = [
        (order[entry["docname"]], entry["node"]["serial_number"], label, entry)
        for label, entry in registry.items()
        if entry["type"].startswith("exercise") and entry["docname"] in order
    ]
    for _, _, label, entry in sorted(listed, key=lambda item: item[:3]):
        subtitle = next(iter(entry["node"].findall(exercise_subtitle)), None)
        yield entry["docname"], label, subtitle.astext() if subtitle else label


def _in_order(env: BuildEnvironment) -> Iterator[str]:
    """All pages, in table-of-contents order."""

    def below(name: str) -> Iterator[str]:
        yield name
        for child in env.toctree_includes.get(name, []):
            yield from below(child)

    yield from below(env.config.root_doc)


def _lists(app: Sphinx, docname: str, found: list[tuple[str, str, str]]) -> nodes.definition_list:
    chapters: dict[str, nodes.bullet_list] = {}
    result = nodes.definition_list(classes=["exercise-list"])
    for page, label, title in found:
        if page not in chapters:
            chapters[page] = nodes.bullet_list()
            term = nodes.term("", "", _link(app, docname, page, "", _title(app.env, page)))
            item = nodes.definition_list_item()
            item += [term, nodes.definition("", chapters[page])]
            result += item
        entry = nodes.paragraph("", "", _link(app, docname, page, label, title))
        chapters[page] += nodes.list_item("", entry)
    return result


def _title(env: BuildEnvironment, page: str) -> str:
    numbers = env.toc_secnumbers.get(page, {}).get("", ())
    number = ".".join(map(str, numbers))
    title = env.titles[page].astext()
    return f"{number}. {title}" if number else title


def _link(app: Sphinx, docname: str, page: str, label: str, text: str) -> nodes.reference:
    address = app.builder.get_relative_uri(docname, page) + (f"#{label}" if label else "")
    return nodes.reference("", text, internal=True, refuri=address)
