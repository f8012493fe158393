"""Sphinx extension: writes folds as <details>, which open without JavaScript.

Otherwise hints and solutions (admonitions with the `dropdown` class) and hidden code would need
scripts to open, or have accessible labels that differ from their visible summaries.

If a hidden cell has no output, its code joins the fold of a hidden cell right after it, so that a
reader sees one button instead of two.
"""

from __future__ import annotations

from html import escape
from typing import Any

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode, HideInputCells
from sphinx.application import Sphinx
from sphinx.locale import admonitionlabels
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx_exercise.nodes import solution_node


def setup(app: Sphinx) -> dict[str, Any]:
    """Take over writing hidden code, solutions and other foldable boxes."""
    app.add_node(HideCodeCellNode, override=True, html=(_visit_hidden, _depart))
    app.add_node(solution_node, override=True, html=(_visit_box, _depart_box))
    app.add_node(nodes.admonition, override=True, html=(_visit_box, _depart_box))
    app.add_post_transform(JoinHidden)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


class JoinHidden(SphinxPostTransform):
    """Moves the code of hidden cells without output into the next cell's fold."""

    default_priority = HideInputCells.default_priority + 1
    formats = ("html",)

    def run(self, **_: Any) -> None:
        """Join the folds of this page."""
        for fold in list(self.document.findall(HideCodeCellNode)):
            cell = fold.parent
            following = cell.next_node(descend=False, siblings=True)
            if len(cell) > 1 or not (isinstance(following, nodes.container) and following.children):
                continue
            target = following[0]
            if isinstance(target, HideCodeCellNode):
                target[:0] = fold.children
                cell.parent.remove(cell)


def _visit_hidden(writer: Any, node: nodes.Element) -> None:
    writer.body.append(f'<details class="hide {escape(" ".join(node["classes"]))}">\n<summary>')
    for state, prompt in (("collapsed", "prompt_show"), ("expanded", "prompt_hide")):
        writer.body.append(f'<span class="{state}">{escape(node[prompt])}</span>')
    writer.body.append("</summary>\n")


def _depart(writer: Any, _node: nodes.Element) -> None:
    writer.body.append("</details>\n")


def _is_folded(node: nodes.Element) -> bool:
    return "dropdown" in node["classes"] and isinstance(node[0], nodes.title)


def _visit_box(writer: Any, node: nodes.Element, name: str = "") -> None:
    if name:  # a `hint`, `note` and so on without its own title
        node.insert(0, nodes.title(name, admonitionlabels[name]))
    folded = _is_folded(node)
    writer.body.append(
        writer.starttag(node, "details" if folded else "div", CLASS=f"admonition {name}".strip())
    )
    if not folded:
        return
    writer.body.append('<summary class="admonition-title">')
    title = node[0].deepcopy()
    # One click can't both follow a link and open the fold.
    for link in list(title.findall(nodes.reference)):
        link.replace_self(link.children)
    for child in title:
        child.walkabout(writer)
    writer.body.append("</summary>\n")
    node["folded-title"] = node.pop(0)  # already written; put back below


def _depart_box(writer: Any, node: nodes.Element, _name: str = "") -> None:
    title = node.attributes.pop("folded-title", None)
    if title is not None:
        node.insert(0, title)
    writer.body.append("</details>\n" if title is not None else "</div>\n")
