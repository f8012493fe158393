"""Sphinx extension: where the site is published from a repository, its pages link back to it.

The address is not written into the book: a fork that publishes its own site links to itself. It
comes from BOOK_REPOSITORY, or from the variables that a public CI sets.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config

BRANCH = "main"  # that the site is built from
BINDER = "https://mybinder.org"
# How each host builds its addresses: its name, Binder's name for it, to edit, to report an error.
HOSTS = {
    "github.com": ("GitHub", "gh", "edit", "issues/new?title="),
    "gitlab.com": ("GitLab", "gl", "-/edit", "-/issues/new?issue[title]="),
}


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


def page_links(repository: str | None, path: str, title: str) -> dict[str, str] | None:
    """The host of a page's repository, and where to run, edit and report the page.

    Args:
        repository: its address, for example `https://github.com/owner/name`.
        path: the file of the page in the repository.
        title: the title of the page, for the title of a report.

    Returns:
        What the template shows, or None if no public repository is known.
    """
    parts = urlsplit(repository or "")
    owner, _, name = parts.path.strip("/").partition("/")
    if parts.hostname not in HOSTS or not (owner and name):
        return None
    host, provider, edit, report = HOSTS[parts.hostname]
    url = f"https://{parts.hostname}/{owner}/{name}"
    project = quote(f"{owner}/{name}", safe="" if provider == "gl" else "/")
    return {
        "host": host,
        "binder": f"{BINDER}/v2/{provider}/{project}/{BRANCH}?urlpath=lab/tree/{path}",
        "edit": f"{url}/{edit}/{BRANCH}/{path}",
        "report": f"{url}/{report}{quote(f'{title}: ')}",
    }


def _link(_app: Sphinx, config: Config) -> None:
    repository = address(os.environ)
    if repository is None:
        return
    config.html_theme_options.update(
        repository_url=repository,
        repository_branch=BRANCH,
        path_to_docs="book",
        use_repository_button=True,
        use_edit_page_button=True,
        use_issues_button=True,
    )
    config.html_theme_options.setdefault("launch_buttons", {}).update(
        notebook_interface="jupyterlab", binderhub_url=BINDER
    )
