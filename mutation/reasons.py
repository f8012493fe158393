"""Why mutants may survive: compares the list in survivors.toml with a run."""

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from mutation.mutants import Mutant

LIST = Path(__file__).with_name("survivors.toml")


@dataclass(frozen=True, order=True)
class Key:
    """A mutant's identity: stable as long as its statement doesn't change, even if it moves."""

    module: str
    function: str
    before: str
    after: str
    number: int = 1


def key(mutant: Mutant, root: Path) -> Key:
    """Return the key of a mutant of a module under `root`."""
    module = mutant.place.path.relative_to(root).as_posix()
    return Key(module, mutant.place.name, mutant.before, mutant.after, mutant.number)


def read_reasons(path: Path = LIST) -> dict[Key, str]:
    """Return the reasons, keyed by mutant.

    Raises:
        ValueError: if an entry has no reason, or two entries name the same mutant.
    """
    reasons: dict[Key, str] = {}
    for entry in tomllib.loads(path.read_text()).get("survivor", []):
        reason = entry.pop("reason", "").strip()
        named = Key(**entry)
        if not reason:
            raise ValueError(f"{path.name}: expected a reason for {named}, but got none")
        if named in reasons:
            raise ValueError(f"{path.name}: expected one entry for {named}, but got two")
        reasons[named] = reason
    return reasons


def as_entry(named: Key) -> str:
    """Return a survivor as an entry for the list, without its reason."""
    texts = {name: value for name, value in vars(named).items() if name != "number"}
    lines = [f"{name} = {_quoted(text)}" for name, text in texts.items()]
    number = [f"number = {named.number}"] if named.number > 1 else []
    return "\n".join(["[[survivor]]", *lines, *number, 'reason = ""'])


def _quoted(text: str) -> str:
    if "'" not in text and "\n" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def outdated(reasons: Iterable[Key], survivors: Iterable[Key], modules: Iterable[str]) -> list[Key]:
    """Return the keys of reasons for mutants of `modules` that no longer survive."""
    tried, alive = set(modules), set(survivors)
    return [named for named in reasons if named.module in tried and named not in alive]
