"""Sphinx extension: where the site is published from a repository, its pages link back to it.

The address is not written into the book: a fork that publishes its own site links to itself. It
comes from BOOK_REPOSITORY, or from the variables that a public CI sets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from sphinx.application import Sphinx
from sphinx.config import Config


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect before the theme reads its options."""
    app.connect("config-inited", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def address(environment: Mapping[str, str]) -> str | None:
    """The address of the repository that the site is built from, if it is known."""
    if environment.get("BOOK_REPOSITORY"):
        return environment["BOOK_REPOSITORY"].rstrip("/")
    server, name = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def _link(_app: Sphinx, config: Config) -> None:
    repository = address(os.environ)
    if repository is None:
        return
    config.html_theme_options.update(
        repository_url=repository,
        repository_branch="main",
        path_to_docs="book",
        use_repository_button=True,
        use_edit_page_button=True,
        use_issues_button=True,
    )
    config.html_theme_options.setdefault("launch_buttons", {}).update(
        notebook_interface="jupyterlab", binderhub_url="https://mybinder.org"
    )
