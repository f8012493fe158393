"""Builds the site, and makes its styles, fonts and pictures."""
