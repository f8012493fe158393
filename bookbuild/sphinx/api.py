"""Sphinx extension: the API reference of lnbook, module by module."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

from docutils import nodes
from docutils.statemachine import StringList
from numpy.typing import ArrayLike
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective
from sphinx.util.typing import stringify_annotation

LISTED = "api-modules"  # page metadata: the modules that the page lists, keyed by pattern


class _OneField(NamedTuple):
    field: None


_FIELD = type(_OneField.field)  # the type of a named tuple's fields

# What Sphinx writes for an ArrayLike and for an NDArray, which are only names of other types
_ARRAY_LIKE = stringify_annotation(ArrayLike, "smart")
_ND_ARRAY = re.compile(
    r"~numpy\.ndarray\[tuple\[~typing\.Any, \.\.\.\], ~numpy\.dtype\[([^]]+)\]\]"
)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the `api-modules` directive, and leave out what docstrings already explain."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _short)
    app.connect("env-get-outdated", _outdated)
    app.add_directive("api-modules", Modules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _skip(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Skip the fields of named tuples: the class docstring explains them."""
    del app, what, name, skip, options
    return True if isinstance(member, _FIELD) else None


def _short(
    app: Sphinx,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Write the types of arrays as the code does: ArrayLike, NDArray."""
    del app, what, name, obj, options
    return _named(signature), _named(returned)


def _named(types: str | None) -> str | None:
    return types and _ND_ARRAY.sub(r"NDArray[\1]", types.replace(_ARRAY_LIKE, "ArrayLike"))


def _modules(env: BuildEnvironment, pattern: str) -> list[str]:
    """The sorted names of public modules that match a pattern such as `lnbook.data.*`."""
    root = Path(env.srcdir).parent
    found = (
        path.relative_to(root).with_suffix("")
        for path in root.glob(pattern.replace(".", "/") + ".py")
    )
    return sorted(".".join(path.parts) for path in found if not path.name.startswith("_"))


def _outdated(
    app: Sphinx, env: BuildEnvironment, added: set[str], changed: set[str], removed: set[str]
) -> list[str]:
    """The pages whose module lists have changed since they were read."""
    del app, added, changed, removed
    return [
        page
        for page, metadata in env.metadata.items()
        for pattern, names in metadata.get(LISTED, {}).items()
        if names != _modules(env, pattern)
    ]


class Modules(SphinxDirective):
    """`api-modules` with a pattern such as `lnbook.data.*`: documents the matching modules."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Document each module with autodoc."""
        pattern = self.arguments[0]
        names = _modules(self.env, pattern)
        if not names:
            raise self.error(
                f"api-modules: expected modules such as 'lnbook.data.*', but none match {pattern!r}"
            )
        self.env.metadata[self.env.docname].setdefault(LISTED, {})[pattern] = names
        lines = [line for name in names for line in (f".. automodule:: {name}", "   :members:", "")]
        section = nodes.section()
        section.document = self.state.document
        self.state.nested_parse(StringList(lines, source=pattern), self.content_offset, section)
        return list(section.children)
