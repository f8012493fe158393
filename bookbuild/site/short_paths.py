"""Shrinks a figure with short names, and paths in which each point is relative to the previous one.

Figures are mostly letters, drawn as paths. Differences between neighboring points have fewer digits
than positions. Each is a difference of rounded positions, so rounding errors don't add up.
"""

from __future__ import annotations

import re
from itertools import count, product
from string import ascii_lowercase

# What matplotlib writes; all other paths stay as they are.
_PATH = re.compile(r' d="(M[MLQCz\d. -]*)"')
_GLYPH = re.compile(_PATH.pattern + r' transform="scale\(0\.015625\)"')
_MOVE = re.compile(r"translate\(([\d.-]+) ([\d.-]+)\)")
_COMMAND = re.compile(r"([MLQCz])([^MLQCz]*)")
_NUMBER = re.compile(r"-?\d*\.?\d+")
_NAME = re.compile(r' id="([\w.-]+)"')
_NAMED = re.compile(r'( id="|href="#|url\(#)([\w.-]+)')
_COUNTS = {"M": 2, "L": 2, "Q": 4, "C": 6}  # how many numbers one step of each command takes


def shortened(svg: str) -> str:
    """A figure with shorter paths and names, for the pages.

    Positions are rounded to hundredths of a point. Letters, which matplotlib draws on a grid with
    6400 lines per em, are rounded to 160 lines per em: a step is a tenth of a pixel.
    """
    svg = _GLYPH.sub(lambda m: f' d="{_relative(m[1], 1 / 40, 0)}" transform="scale(.625)"', svg)
    svg = _PATH.sub(lambda m: f' d="{_relative(m[1], 1, 2)}"', svg)
    svg = _MOVE.sub(lambda m: f"translate({_short(m[1])} {_short(m[2])})", svg)
    letters = ("".join(name) for size in count(1) for name in product(ascii_lowercase, repeat=size))
    names: dict[str, str] = dict(zip(_NAME.findall(svg), letters, strict=False))
    return _NAMED.sub(lambda m: f"{m[1]}{names.get(m[2], m[2])}", svg)


def _relative(path: str, scale: float, digits: int) -> str:
    """Path data in relative commands, as multiples of a unit in the last digit."""
    at, start, before = (0, 0), (0, 0), ""
    parts: list[str] = []
    for letter, rest in _COMMAND.findall(path):
        if letter == "z":
            parts.append("z")
            at, before = start, "z"
            continue
        numbers = [round(float(text) * scale * 10**digits) for text in _NUMBER.findall(rest)]
        for first in range(0, len(numbers), _COUNTS[letter]):
            step = numbers[first : first + _COUNTS[letter]]
            moves = [number - at[i % 2] for i, number in enumerate(step)]
            command, moves = _straight(letter.lower(), moves)
            words = [_short(move / 10**digits) for move in moves]
            # After "m", a command without a letter would be a line.
            parts.append(_joined(words, "" if command == before != "m" else command))
            at, before = (step[-2], step[-1]), command
            start = at if letter == "M" else start
    return "".join(parts)


def _straight(command: str, moves: list[int]) -> tuple[str, list[int]]:
    """A line, written as a horizontal or vertical line if it is one."""
    if command == "l" and moves[1] == 0:
        return "h", moves[:1]
    return ("v", moves[1:]) if command == "l" and moves[0] == 0 else (command, moves)


def _joined(words: list[str], command: str) -> str:
    """A command and its numbers, with spaces only where they're needed."""
    first = command or ("" if words[0].startswith("-") else " ")
    return first + words[0] + "".join(w if w.startswith("-") else f" {w}" for w in words[1:])


def _short(number: float | str) -> str:
    text = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else re.sub(r"^(-?)0\.", r"\1.", text)
