"""Reads, compares and writes the pinned versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONDA_NAMES = {"pytorch-cpu": "torch", "matplotlib-base": "matplotlib"}
_CONDA_LINE = re.compile(r"(?m)^(  - )([\w-]+)=(\S+)$")

Pins = dict[str, str]  # canonical name: version


def read(path: Path) -> Pins:
    """The pins in a constraints file."""
    return parse(path.read_text(encoding="utf-8"))


def parse(text: str) -> Pins:
    """The pins in the text of a constraints file."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    found = [Requirement(line) for line in lines]
    return {canonicalize_name(pin.name): str(pin.specifier).removeprefix("==") for pin in found}


def changes(old: Pins, new: Pins) -> Iterator[str]:
    """One line for each package that was added or removed, or whose version changed."""
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    width = max(map(len, names), default=0)
    for name in names:
        was, now = old.get(name, "(none)"), new.get(name, "(none)")
        yield f"{name:{width}}  {was} -> {now}"


def write(path: Path, new: Pins) -> None:
    """Rewrite a constraints file, but keep its header and its spelling of package names."""
    text = path.read_text(encoding="utf-8")
    head = [line for line in text.splitlines() if line.startswith("#")]
    written = re.findall(r"(?m)^([\w.-]+)==", text)
    spelled: dict[str, str] = {canonicalize_name(name): name for name in written}
    lines = [f"{spelled.get(name, name)}=={version}" for name, version in new.items()]
    lines.sort(key=lambda line: line.lower().replace("_", "-"))
    path.write_text("\n".join([*head, *lines]) + "\n", encoding="utf-8")


def write_conda(path: Path, new: Pins) -> None:
    """Update the versions in a conda environment file that are also in pip's constraints."""

    def line(match: re.Match[str]) -> str:
        start, name, version = match.groups()
        return f"{start}{name}={new.get(CONDA_NAMES.get(name, name), version)}"

    text = path.read_text(encoding="utf-8")
    path.write_text(_CONDA_LINE.sub(line, text), encoding="utf-8")
