"""Turns chapters into executed references and a website: see CONTRIBUTING.md."""

import sys

# Reading a notebook imports jsonschema, which imports this if it can. Its grammar takes a second to
# compile, and is needed only for URLs with non-ASCII characters, which no notebook has.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
