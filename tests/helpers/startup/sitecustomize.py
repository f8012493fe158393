"""Runs when a Python with this folder on its path starts, and saves it a second.

jsonschema imports rfc3987_syntax, whose grammar takes longer to compile than all of Sphinx takes to
import. It checks addresses with non-ASCII letters, which no notebook has.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
