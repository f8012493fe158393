"""Merges many style sheets into one small one with only what the pages use, in the original order.

The theme and the extensions have half a megabyte of CSS in a dozen files, and a page uses a
twentieth of it. A selector is removed if it names a tag, class, id or attribute that no page and no
script contains; a declaration, if a later rule with the same selector overrides it; a custom
property, animation or font, if nothing that is kept refers to it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import tinycss2

from bookbuild.site.used_names import Vocabulary

# Without JavaScript, a page's mode is "auto": it follows the system setting.
SYSTEM = {
    "light": "not all and (prefers-color-scheme:dark)",
    "dark": "(prefers-color-scheme:dark)",
}
_MODE = re.compile(r"\[data-theme=(light|dark)\]")
_AUTO = re.compile(r"\[data-theme=auto\]")
_USE = re.compile(r"var\(\s*(--[\w-]+)")
_NOT_EVERYWHERE = re.compile(r":-|:has\(")  # browsers that don't know it skip the whole rule
_NO_SPACE_AROUND = re.compile(r"\s*([>+~,])\s*")


@dataclass
class Rule:
    """Selectors and their declarations, with conditions such as `@media print`."""

    conditions: tuple[str, ...]
    selectors: list[str]
    declarations: list[tuple[str, str]]


def combine(
    sheets: Iterable[tuple[str, str]], vocabulary: Vocabulary, without: Iterable[str] = ()
) -> str:
    """Merge several style sheets into one.

    Args:
        sheets: the URL and text of each, in the order of the page. URLs are relative to the
            folder of the result, as are the URLs inside the result.
        vocabulary: the names that the pages use.
        without: font families to leave out.

    Raises:
        ValueError: if a style sheet imports another one or can't be parsed.
    """
    rules: list[Rule] = []
    others: dict[str, tuple[str, str]] = {}  # animations and font faces: name and text
    for address, text in sheets:
        for item in _items(address, tinycss2.parse_stylesheet(text, True, True), (), vocabulary):
            if isinstance(item, Rule):
                rules.append(item)
            else:
                others[item[1]] = item
    without = {name.lower() for name in without}
    _drop_said_again(rules)
    _drop_unused_variables(rules, vocabulary)
    text = _write(rules)
    used = text.lower()
    kept = [
        body
        for body, (name, _) in others.items()
        if name.lower() in used and name.lower() not in without
    ]
    return "".join(kept) + text


def _items(
    address: str, nodes: Iterable[Any], conditions: tuple[str, ...], vocabulary: Vocabulary
) -> Iterator[Rule | tuple[str, str]]:
    for node in nodes:
        if node.type == "error":
            # Like browsers, skip what can't be parsed; our own files don't have such rules.
            continue
        if node.type == "qualified-rule":
            selectors = [
                selector
                for tokens in _split(node.prelude)
                if _possible(tokens, vocabulary) and (selector := _selector(tokens))
            ]
            declarations = _declarations(node.content, address)
            if selectors and declarations:
                yield Rule(conditions, selectors, declarations)
        elif node.type == "at-rule":
            yield from _at_rule(address, node, conditions, vocabulary)


def _at_rule(
    address: str, node: Any, conditions: tuple[str, ...], vocabulary: Vocabulary
) -> Iterator[Rule | tuple[str, str]]:
    keyword = node.lower_at_keyword
    prelude = _text(node.prelude)
    if keyword == "charset":
        return
    if keyword == "import":
        raise ValueError(f"{address}: imports {prelude}; name that style sheet instead")
    if keyword in ("media", "supports"):
        inner = tinycss2.parse_rule_list(node.content, True, True)
        yield from _items(address, inner, (*conditions, f"@{keyword} {prelude}"), vocabulary)
    elif keyword == "font-face":
        declarations = dict(_declarations(node.content, address))
        family = declarations.get("font-family", "").strip("\"'").replace("\\", "")
        yield family, f"@font-face{{{_joined(list(declarations.items()))}}}"
    elif keyword.endswith("keyframes"):
        body = "".join(
            f"{_text(frame.prelude)}{{{_joined(_declarations(frame.content, address))}}}"
            for frame in tinycss2.parse_rule_list(node.content, True, True)
            if frame.type == "qualified-rule"
        )
        yield prelude, f"@{keyword} {prelude}{{{body}}}"
    elif keyword == "page":
        # Boxes in the margins, such as the one for the page number, are rules inside this one.
        parts = tinycss2.parse_blocks_contents(node.content, True, True)
        boxes = [
            (f"@{part.lower_at_keyword}", f"{{{_joined(_declarations(part.content, address))}}}")
            for part in parts
            if part.type == "at-rule"
        ]
        own = _declarations(node.content, address)
        yield Rule(conditions, [f"@page {prelude}".strip()], [*own, *boxes])


def _split(tokens: Iterable[Any]) -> list[list[Any]]:
    """The items of a comma-separated list."""
    parts: list[list[Any]] = [[]]
    for token in tokens:
        if token.type == "literal" and token.value == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _possible(tokens: list[Any], vocabulary: Vocabulary) -> bool:
    """Whether a selector could match anything on the pages."""
    before = ""
    for token in tokens:
        if token.type == "ident":
            if before == ".":
                if token.value not in vocabulary.classes:
                    return False
            elif before != ":" and token.value.lower() not in vocabulary.tags:
                return False
        elif token.type == "hash":
            if token.value not in vocabulary.ids:
                return False
        elif token.type == "[] block":
            name = next(part.value for part in token.content if part.type == "ident")
            if name.lower() not in vocabulary.attributes:
                return False
        elif (
            token.type == "function"
            and token.lower_name in ("is", "where", "has")
            and not any(_possible(part, vocabulary) for part in _split(token.arguments))
        ):
            return False
        before = token.value if token.type == "literal" else ""
    return True


def _selector(tokens: list[Any]) -> str:
    text = _NO_SPACE_AROUND.sub(r"\1", _text(tokens))
    return re.sub(r"\[([\w-]+[~|^$*]?)=[\"']([A-Za-z][\w-]*)[\"']\]", r"[\1=\2]", text)


def _text(tokens: Iterable[Any]) -> str:
    return " ".join(
        tinycss2.serialize([token for token in tokens if token.type != "comment"]).split()
    ).replace("/**/", "")


def _declarations(content: Any, address: str) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for node in tinycss2.parse_declaration_list(content, True, True):
        if node.type != "declaration":
            continue
        name = node.name if node.name.startswith("--") else node.lower_name
        value = _text(_rebased(node.value, posixpath.dirname(address)))
        found[name, value + ("!important" if node.important else "")] = None
    return list(found)


def _rebased(tokens: Iterable[Any], folder: str) -> Iterator[Any]:
    """The same value, with URLs relative to the folder of the result."""
    for token in tokens:
        address = token.value if token.type == "url" else None
        if token.type == "function" and token.lower_name == "url":
            address = token.arguments[0].value
        if address is None or re.match(r"[a-z]+:|/|#", address):
            yield token
        else:
            address = posixpath.normpath(posixpath.join(folder, address))
            yield from tinycss2.parse_component_value_list(f"url({address})")


def _drop_said_again(rules: list[Rule]) -> None:
    """Drop declarations that a later rule with the same selector and conditions overrides."""
    later: dict[tuple[tuple[str, ...], str], set[tuple[str, bool]]] = {}
    for rule in reversed(rules):
        known = [
            later.setdefault((rule.conditions, selector), set()) for selector in rule.selectors
        ]
        said = [(name, value.endswith("!important")) for name, value in rule.declarations]
        rule.declarations = [
            declaration
            for declaration, (name, important) in zip(rule.declarations, said, strict=True)
            if not all((name, True) in names or (name, important) in names for names in known)
        ]
        if not any(_NOT_EVERYWHERE.search(selector) for selector in rule.selectors):
            for names in known:
                names.update(said)


def _drop_unused_variables(rules: list[Rule], vocabulary: Vocabulary) -> None:
    """Drop custom properties that no declaration, page or script refers to."""
    defined: dict[str, set[str]] = {}
    used = set(vocabulary.variables)
    for rule in rules:
        for name, value in rule.declarations:
            if name.startswith("--"):
                defined.setdefault(name, set()).update(_USE.findall(value))
            else:
                used.update(_USE.findall(value))
    pending = list(used)
    while pending:
        for name in defined.get(pending.pop(), ()):
            if name not in used:
                used.add(name)
                pending.append(name)
    for rule in rules:
        rule.declarations = [
            (name, value)
            for name, value in rule.declarations
            if not name.startswith("--") or name in used
        ]


def _joined(declarations: list[tuple[str, str]]) -> str:
    return ";".join(
        f"{name}{value}" if name.startswith("@") else f"{name}:{value}"
        for name, value in declarations
    )


def _write(rules: list[Rule]) -> str:
    written: list[tuple[tuple[str, ...], str]] = []
    on_paper: list[tuple[tuple[str, ...], str]] = []  # last, so that it applies in dark mode too
    for rule in rules:
        if not rule.declarations:
            continue
        body = f"{{{_joined(rule.declarations)}}}"
        written.append((rule.conditions, ",".join(rule.selectors) + body))
        for mode, condition in SYSTEM.items():
            same = [
                _MODE.sub("[data-theme=auto]", selector)
                for selector in rule.selectors
                if f"[data-theme={mode}]" in selector
            ]
            if same:
                written.append(((*rule.conditions, f"@media {condition}"), ",".join(same) + body))
            if same and mode == "light":
                printed = [_AUTO.sub("[data-theme]", selector) for selector in same]
                on_paper.append(((*rule.conditions, "@media print"), ",".join(printed) + body))
    result: list[str] = []
    open_now: tuple[str, ...] = ()
    for conditions, text in [*written, *on_paper]:
        if conditions != open_now:
            result.append("}" * len(open_now) + "".join(f"{each}{{" for each in conditions))
            open_now = conditions
        result.append(text)
    return "".join(result) + "}" * len(open_now)
