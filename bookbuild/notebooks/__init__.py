"""The chapters as notebooks for download."""
