"""Makes the lab sheets that readers download."""
