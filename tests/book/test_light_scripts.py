"""The pages' scripts lose their comments, and nothing else."""

from pathlib import Path

from bookbuild.sphinx.light_scripts import shorten

SCRIPT = """\
/* A comment
   in two lines. */
const text = `a // b  /* c */
  ${1 + +1}`; // another comment
const slash = /[/*]"/.test("// no comment");
"""
SHORT = 'const text=`a // b  /* c */\n  ${1 + +1}`;const slash=/[/*]"/.test("// no comment");'


def test_comments_and_indentation_are_removed(tmp_path: Path) -> None:
    (tmp_path / "own.js").write_text(SCRIPT)
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "other.js").write_text(SCRIPT)
    shorten(tmp_path)
    assert (tmp_path / "own.js").read_text() == SHORT
    assert (tmp_path / "library" / "other.js").read_text() == SCRIPT


def test_what_is_short_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "own.js").write_text(SHORT)
    shorten(tmp_path)
    assert (tmp_path / "own.js").read_text() == SHORT
