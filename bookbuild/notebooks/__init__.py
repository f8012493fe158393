"""The chapters as downloadable notebooks."""
