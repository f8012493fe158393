"""Addresses in the public repository of a page: to run it, to change it, to report an error."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote, urlsplit

BINDER = "https://mybinder.org"
# How each host builds its addresses: its name, Binder's name for it, to edit, to report.
HOSTS = {
    "github.com": ("GitHub", "gh", "{url}/edit/{branch}/{path}", "{url}/issues/new?title={title}"),
    "gitlab.com": (
        "GitLab",
        "gl",
        "{url}/-/edit/{branch}/{path}",
        "{url}/-/issues/new?issue[title]={title}",
    ),
}


@dataclass(frozen=True)
class RepositoryLinks:
    """Where the links of one page lead, and the name of the host to tell the reader."""

    host: str
    binder: str
    edit: str
    report: str


def repository_links(
    repository: str | None, branch: str, path: str, title: str
) -> RepositoryLinks | None:
    """The links of a page, or None if no public repository is known.

    Args:
        repository: its address, for example `https://github.com/owner/name`.
        branch: the branch that the site is built from.
        path: the file of the page in the repository.
        title: the title of the page, for the title of a report.
    """
    parts = urlsplit(repository or "")
    owner, _, name = parts.path.strip("/").partition("/")
    if parts.hostname not in HOSTS or not (owner and name):
        return None
    host, provider, edit, report = HOSTS[parts.hostname]
    url = f"https://{parts.hostname}/{owner}/{name}"
    project = quote(f"{owner}/{name}", safe="" if provider == "gl" else "/")
    values = {"url": url, "branch": branch, "path": path, "title": quote(f"{title}: ")}
    return RepositoryLinks(
        host=host,
        binder=f"{BINDER}/v2/{provider}/{project}/{branch}?urlpath=lab/tree/{path}",
        edit=edit.format(**values),
        report=report.format(**values),
    )
