"""Scripts for what takes too long for a chapter, or differs between machines; see `__main__`."""
