"""What Binder does after it has made the environment."""

import json
import os
import subprocess
import sysconfig
from pathlib import Path

from bookbuild.book import Book


def test_a_chapter_opens_as_a_notebook_on_binder(book: Book, tmp_path: Path) -> None:
    script = book.root / "postBuild"
    assert os.access(script, os.X_OK)
    tools = os.pathsep.join([sysconfig.get_path("scripts"), os.environ["PATH"]])
    environment = {**os.environ, "PATH": tools, "JUPYTER_CONFIG_DIR": str(tmp_path)}
    subprocess.run([script], check=True, env=environment, capture_output=True)
    settings = tmp_path / "labconfig" / "default_setting_overrides.json"
    manager = json.loads(settings.read_text())["@jupyterlab/docmanager-extension:plugin"]
    assert manager["defaultViewers"]["markdown"] == "Jupytext Notebook"


def test_no_folder_hides_the_environment_from_binder(book: Book) -> None:
    # With one of these, Binder does not look at environment.yml and postBuild at the top.
    assert not any((book.root / name).exists() for name in ("binder", ".binder"))
    assert (book.root / "environment.yml").exists()
