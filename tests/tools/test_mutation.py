"""The mutation run: its mutators, how a mutant is installed, and the report on survivors."""

import ast
import gc
import os
import sys
import textwrap

import pytest

from mutation.__main__ import CORE, ROOT, _modules
from mutation.fork import in_fork, start
from mutation.memory import recall, remember
from mutation.mutants import mutants
from mutation.mutators import changed, negated
from mutation.reasons import Key, as_entry, key, outdated, read_reasons
from mutation.report import score, survivors, table
from mutation.swap import install


def written(tmp_path, text: str):
    path = tmp_path / "victim.py"
    path.write_text(textwrap.dedent(text))
    return path


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a + b", ["a - b"]),
        ("a ** 2", ["a * 2"]),
        ("a < b <= c", ["a <= b <= c", "a < b < c"]),
        ("a and b", ["a or b"]),
        ("a is None", ["a is not None"]),
        ("not a", ["a"]),
        ("-a", ["a"]),
        ("-1", []),
        ("3", ["4", "2"]),
        ("0.5", ["2.0"]),
        ("2.0", ["4.0", "0.5"]),
        ("0.0", ["1.0"]),
        ("1e-5", ["2e-05"]),
        ("True", ["False"]),
        ("'text'", []),
        ("x.mean(1)", ["x.sum(1)"]),
        ("x.contiguous()", ["x"]),
        ("f(x)", []),
    ],
)
def test_what_an_expression_is_changed_into(before, after):
    node = ast.parse(before, mode="eval").body
    assert [ast.unparse(new) for new in changed(node)] == after


@pytest.mark.parametrize(
    ("test", "after"),
    [("a < b", ["not a < b"]), ("a == b", []), ("not a", []), ("a", ["not a"])],
)
def test_a_condition_is_negated_unless_its_operator_is(test, after):
    assert [ast.unparse(new) for new in negated(ast.parse(test, mode="eval").body)] == after


VICTIM = '''
    """Text 1."""
    from typing import TypeAlias
    Number: TypeAlias = int | float
    SIZE = 4
    __all__ = ["f"]

    def f(x: "int", scale: float = 0.5, name: str = "a") -> "int | None":
        """Text 2."""
        if x < 0:
            raise ValueError(f"expected 1, but got {x + 1}")
        x *= 3
        y = x
        y = y + SIZE
        return y if name == "a" else None
'''


def test_the_mutants_of_a_module(tmp_path):
    found = [(m.place.name, m.before, m.after) for m in mutants(written(tmp_path, VICTIM))]
    last = "return y if name == 'a' else None"
    assert found == [
        ("", "SIZE = 4", "SIZE = 5"),
        ("", "SIZE = 4", "SIZE = 3"),
        ("f", "scale=0.5", "scale=2.0"),
        ("f", "name='a'", "name='a?'"),
        ("f", "if x < 0:", "if x <= 0:"),
        ("f", "if x < 0:", "if not x < 0:"),
        ("f", "if x < 0:", "if x < 1:"),
        ("f", "if x < 0:", "if x < -1:"),
        ("f", "raise ValueError(f'expected 1, but got {x + 1}')", "pass"),
        ("f", "x *= 3", "pass"),
        ("f", "x *= 3", "x *= 4"),
        ("f", "x *= 3", "x *= 2"),
        ("f", "y = y + SIZE", "pass"),
        ("f", "y = y + SIZE", "y = y - SIZE"),
        ("f", last, "return None"),
        ("f", last, "return y if name != 'a' else None"),
        ("f", last, "return y if name == 'a?' else None"),
    ]


def test_making_the_list_leaves_the_tree_as_it_was(tmp_path):
    path = written(tmp_path, VICTIM)
    (tree,) = {m.place.tree for m in mutants(path)}
    assert ast.dump(tree) == ast.dump(ast.parse(path.read_text()))


def test_equal_changes_of_one_function_are_numbered(tmp_path):
    path = written(tmp_path, "def f(x):\n    g(x, 1)\n    g(x, 1)\n")
    assert [m.number for m in mutants(path) if m.after == "g(x, 2)"] == [1, 2]


def test_every_module_of_the_core_has_its_mutants():
    paths = [path for path in _modules(CORE) if path.name != "__init__.py"]
    assert len(paths) > 30
    assert all(mutants(path) for path in paths)


PACKAGE = """
    SIZE = 4

    def doubles(function):
        def doubled(number, times=1):
            return 2 * function(number) * times

        return doubled

    @doubles
    def double(number):
        return number

    class Base:
        dims = (2, 3)

        def start(self):
            return 1

    class Child(Base):
        dims = (4,)

        @classmethod
        def made(cls, by=2):
            return cls().start() * by

        @property
        def twice(self):
            return 2 * self.start()

        def start(self):
            return super().start() + SIZE
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A module `victim`, and a module that imported a constant from it before any change."""
    path = written(tmp_path, PACKAGE)
    (tmp_path / "reader.py").write_text("from victim import SIZE, Child, double, doubles\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield path
    for name in ("victim", "reader"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("after", "shown", "value"),
    [
        ("return super().start() - SIZE", "Child().start()", -3),
        ("return None", "Child().start()", None),
        ("return cls().start() / by", "Child.made()", 2.5),
        ("by=3", "Child.made()", 15),
        ("return 3 * self.start()", "Child().twice", 15),
        ("SIZE = 5", "SIZE, Child().start()", (5, 6)),
        ("dims = (5,)", "Child.dims", (5,)),
        ("return 2 / function(number) * times", "double(4)", 0.5),
        ("times=2", "double(4)", 16),
        ("times=2", "doubles(abs)(4)", 16),
    ],
)
def test_a_mutant_reaches_everybody_who_imported_the_module(package, after, shown, value):
    import reader

    mutant = next(m for m in reversed(mutants(package)) if m.after == after)

    def work() -> bool:
        gc.freeze()  # the mutation run does this before it forks
        install(mutant, package.parent)
        return eval(shown, vars(reader)) == value

    original = eval(shown, vars(reader))
    in_fork(work)
    assert eval(shown, vars(reader)) == original != value


def test_a_fork_says_whether_its_work_succeeded():
    in_fork(lambda: True)
    with pytest.raises(RuntimeError, match="status 1"):
        in_fork(lambda: False)


def test_a_fork_that_never_ends_is_ended():
    def endless() -> None:
        while True:
            pass

    _, status = os.waitpid(start(endless, cpu_seconds=1), 0)
    assert os.waitstatus_to_exitcode(status) < 0


ONE = Key("lnbook/a.py", "f", "x = 'a'", "x = 'b'")
TWO = Key("lnbook/a.py", "f", "x + 1", "x - 1", 2)
THREE = Key("lnbook/b.py", "g", "x + 1", "x - 1")


def test_an_entry_reads_as_the_key_it_was_written_from(tmp_path):
    path = tmp_path / "list.toml"
    entries = [as_entry(named).replace('reason = ""', 'reason = "so"') for named in (ONE, TWO)]
    path.write_text("\n".join(entries))
    assert read_reasons(path) == {ONE: "so", TWO: "so"}


@pytest.mark.parametrize(
    ("entries", "message"),
    [([ONE], "expected a reason for .*, but got none"), ([THREE, THREE], "expected one entry")],
)
def test_a_list_of_reasons_that_is_wrong_is_refused(tmp_path, entries, message):
    path = tmp_path / "list.toml"
    text = "\n".join(as_entry(named) for named in entries)
    path.write_text(text if len(entries) == 1 else text.replace('reason = ""', 'reason = "so"'))
    with pytest.raises(ValueError, match=message):
        read_reasons(path)


def test_every_reason_is_for_a_mutant_that_exists():
    existing = {key(mutant, ROOT) for path in _modules(CORE) for mutant in mutants(path)}
    assert not read_reasons().keys() - existing


def test_a_reason_whose_mutant_was_killed_is_outdated():
    assert outdated([ONE, TWO, THREE], [TWO], ["lnbook/a.py"]) == [ONE]


def test_the_report():
    outcomes = {ONE: "survived", TWO: "timed out", THREE: "killed"}
    assert score(outcomes) == pytest.approx(2 / 3)
    assert table(outcomes).split("\n")[1].split() == [
        "lnbook/a.py",
        "2",
        "0",
        "1",
        "1",
        "50.0",
        "%",
    ]
    assert table(outcomes).split("\n")[-1].split() == ["total", "3", "1", "1", "1", "66.7", "%"]
    assert "because" in survivors(outcomes, {ONE: "because"})
    assert survivors(outcomes, {}) == as_entry(ONE)


def test_what_was_found_is_remembered(tmp_path):
    path = tmp_path / "folder" / "outcomes.json"
    assert recall(path) == {}
    remember({TWO: "killed"}, path)
    assert recall(path) == {TWO: "killed"}
