"""Turns chapters into executed references and into the site: see CONTRIBUTING.md."""
