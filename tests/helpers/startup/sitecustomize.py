"""Runs whenever Python starts with this folder on its path, and saves a second.

jsonschema imports rfc3987_syntax, whose grammar takes longer to compile than all of Sphinx takes to
import. It's needed only for URLs with non-ASCII characters, which no notebook has.
"""

import sys

sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
