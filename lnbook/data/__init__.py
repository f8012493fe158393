"""Real and synthetic data that need no download, with one module per dataset."""
