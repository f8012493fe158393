"""The environment: made, pinned, raised, and its licenses."""
