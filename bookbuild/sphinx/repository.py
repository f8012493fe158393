"""Sphinx extension: links pages to the repository that the site is published from.

The repository's URL isn't part of the book, so that a fork's site links to the fork. It comes from
BOOK_REPOSITORY, or from the variables that public CI services set.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from sphinx.application import Sphinx
from sphinx.config import Config

BRANCH = "main"  # the site is built from this branch
BINDER = "https://mybinder.org"
# Each host's URLs: its name, Binder's name for it, its URL for editing, its URL for new issues.
HOSTS = {
    "github.com": ("GitHub", "gh", "edit", "issues/new?title="),
    "gitlab.com": ("GitLab", "gl", "-/edit", "-/issues/new?issue[title]="),
}


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect before the theme reads its configuration."""
    app.connect("config-inited", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def address(environment: Mapping[str, str]) -> str | None:
    """The URL of the repository that the site is built from, if known."""
    if environment.get("BOOK_REPOSITORY"):
        return environment["BOOK_REPOSITORY"].rstrip("/")
    server, name = environment.get("GITHUB_SERVER_URL"), environment.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def contributors(repository: str | None) -> str | None:
    """The page of a repository that lists who contributed, if its host is known."""
    parts = urlsplit(repository or "")
    if parts.hostname not in HOSTS or parts.path.count("/") < 2:
        return None
    page = "graphs/contributors" if parts.hostname == "github.com" else f"-/graphs/{BRANCH}"
    return f"https://{parts.hostname}{parts.path.rstrip('/')}/{page}"


def page_links(repository: str | None, path: str, title: str) -> dict[str, str] | None:
    """The host of a page's repository, and links to run it, edit it or report a problem.

    Args:
        repository: its URL, for example `https://github.com/owner/name`.
        path: the page's file in the repository.
        title: the page's title, used in an issue's title.

    Returns:
        The values for the template, or None if the host isn't known.
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
