"""The settings of the spell checker find what they are for, and leave quotes alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from bookbuild.book import Book


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The mean is seperate.", "seperate ==> separate"),
        ("The colour of a line.", "colour ==> color"),
        ("def normalise(x): ...", "normalise ==> normalize"),
        ('> "a sligthly different" (003)', None),
        ("> a sligthly different", "sligthly ==> slightly"),
    ],
)
def test_spelling(book: Book, tmp_path: Path, text: str, found: str | None) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"A line.\n{text}\n")
    command = [sys.executable, "-m", "codespell_lib", "--toml", str(book.project), str(page)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == (f"{page}:2: {found}\n" if found else "")
    assert done.returncode == (65 if found else 0), done.stderr
