"""With our settings, the spell checker finds the mistakes it should, and leaves quotes alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from bookbuild.book import Book


def spell(book: Book, path: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "codespell_lib", "--toml", str(book.project), str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


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
    done = spell(book, page)
    assert done.stdout == (f"{page}:2: {found}\n" if found else "")
    assert done.returncode == (65 if found else 0), done.stderr


def test_the_tools_of_the_site_are_not_ours_to_spell(book: Book, tmp_path: Path) -> None:
    for name in ("node_modules/tool", "tool"):
        (tmp_path / "tools" / name).mkdir(parents=True)
        (tmp_path / "tools" / name / "readme.md").write_text("The colour.\n")
    told = spell(book, tmp_path / "tools").stdout.splitlines()
    assert [line.partition(":")[0] for line in told] == [str(tmp_path / "tools/tool/readme.md")]
