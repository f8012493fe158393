"""What Binder does after creating the environment."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path
from urllib.parse import urlsplit

import yaml

from bookbuild.book import Book
from bookbuild.sphinx.repository import page_links


def test_a_chapter_opens_as_a_notebook_on_binder(book: Book, tmp_path: Path) -> None:
    script = book.root / "postBuild"
    assert os.access(script, os.X_OK)
    tools = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": tools, "JUPYTER_CONFIG_DIR": str(tmp_path)}
    subprocess.run([script], check=True, env=environment, capture_output=True)
    settings = tmp_path / "labconfig" / "default_setting_overrides.json"
    manager = json.loads(settings.read_text())["@jupyterlab/docmanager-extension:plugin"]
    notebook = "Jupytext Notebook"
    assert manager["defaultViewers"] == {"markdown": notebook, "myst": notebook}


# Files that repo2docker uses instead of environment.yml or in addition to it: any of them would
# change the image. Checked with `repo2docker --no-build --debug .`, version 2026.4.0.
ELSEWHERE = ["binder", ".binder", "Dockerfile", "repo2docker_config.py", "start", "apt.txt"]
ELSEWHERE += ["Project.toml", "JuliaProject.toml", "REQUIRE", "default.nix", "runtime.txt"]
ELSEWHERE += ["install.R", "DESCRIPTION", "Pipfile", "Pipfile.lock", "requirements.txt", "setup.py"]


def test_binder_takes_the_environment_at_the_top(book: Book) -> None:
    assert [name for name in ELSEWHERE if (book.root / name).exists()] == []
    assert (book.root / "environment.yml").exists()


def test_binder_copies_the_book_before_it_installs(book: Book) -> None:
    # repo2docker installs the environment before it copies the repository, so pip wouldn't find
    # lnbook and constraints.txt unless one of these entries marks the environment as local.
    environment = yaml.safe_load((book.root / "environment.yml").read_text())
    pip = next(item["pip"] for item in environment["dependencies"] if isinstance(item, dict))
    assert [entry for entry in pip if entry.startswith(("--constraint ", "-c ", "-r "))]


def test_the_link_of_a_chapter_opens_its_file(book: Book) -> None:
    for chapter in book.chapters:
        path = chapter.path.relative_to(book.root).as_posix()
        links = page_links("https://github.com/owner/name", path, "")
        assert links is not None
        opened = urlsplit(links["binder"]).query.removeprefix("urlpath=lab/tree/")
        assert book.root / opened == chapter.path
