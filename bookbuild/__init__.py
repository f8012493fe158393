"""Turns chapters into executed references and a website: see CONTRIBUTING.md."""
