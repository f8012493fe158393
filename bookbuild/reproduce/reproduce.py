"""Compares every reference under several settings, and prints a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from bookbuild.book import Book
from bookbuild.chapter import Chapter
from bookbuild.errors import BookError
from bookbuild.outputs.nbval_report import Difference, Result, compare
from bookbuild.reproduce import noise, reproduced, settings
from bookbuild.reproduce.noise.kernel import started
from bookbuild.reproduce.settings import Setting

# A chapter's cost under these settings isn't what it costs a reader.
NO_COSTS = ("-p", "no:tests.chapter_costs")
NOT_RUN = Difference("every cell", "was not run", tells=False)


def reproduce(
    book: Book,
    names: Sequence[str] = (),
    chosen: Sequence[str] = (),
    *,
    only_changed: bool = False,
) -> None:
    """Compare references under several settings; print a table of chapters and settings.

    Args:
        book: the book.
        names: the chapters to compare; if empty, all of them.
        chosen: the names of the settings; if empty, all that this processor supports.
        only_changed: skip chapters that haven't changed since they gave the same outputs.

    Raises:
        BookError: if a name isn't a chapter or a setting, or any output differs.
    """
    chapters = book.named(names) or list(book.chapters)
    found: dict[str, Mapping[str, Result]] = {}
    for setting in settings.named(chosen):
        wanted = [
            chapter
            for chapter in chapters
            if not (only_changed and reproduced.is_known(book, chapter, setting.name))
        ]
        print(f"Comparing {len(wanted)} chapter(s): {setting.name}", flush=True)
        if wanted:
            found[setting.name] = run(book, setting, wanted)
            reproduced.keep(book, found)
    if not found:
        print("Nothing has changed since the last run that gave the same outputs")
        return
    names = [chapter.name for chapter in chapters if any(chapter.name in r for r in found.values())]
    print("", *table(names, found), sep="\n", flush=True)
    problems = [
        f"{name}, {setting}: {cell}"
        for setting, results in found.items()
        for name, result in results.items()
        for cell in result.different
    ]
    if problems:
        log = write_details(book, found)
        raise BookError(*problems, f"see {book.show(log)} for what these cells show instead")


def run(book: Book, setting: Setting, chapters: Sequence[Chapter]) -> dict[str, Result]:
    """Compare the references of some chapters under one setting.

    Raises:
        BookError: if a kernel ran without the noise it should have had.
    """
    # With more threads than cores, threads wait for each other, which is many times slower.
    at_once = max(1, (os.cpu_count() or 1) // (setting.threads or 1))
    references = [book.show(book.reference(chapter)) for chapter in chapters]
    at_once = min(at_once, len(references))
    with setting.environment(Path(noise.__file__).parents[3]) as variables:
        options = (f"--numprocesses={at_once}", "-vv", *NO_COSTS)
        results = compare(book.root, references, variables, *options)
        if setting.noise is not None:
            count = started(Path(variables["IPYTHONDIR"]))
            if count < len(results):
                raise BookError(
                    f"{setting.name}: only {count} of {len(results)} kernels ran with noise"
                )
    not_run = Result(different=[NOT_RUN])
    return {chapter.name: results.get(chapter.name, not_run) for chapter in chapters}


def write_details(book: Book, found: Mapping[str, Mapping[str, Result]]) -> Path:
    """Write the outputs of cells that differ to a file, and return its path."""
    path = book.build / "reproduce.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = [
        f"{name}, {setting}: {cell.cell}\n{cell.details}\n"
        for setting, results in found.items()
        for name, result in results.items()
        for cell in result.different
    ]
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def table(names: Iterable[str], found: Mapping[str, Mapping[str, Result]]) -> list[str]:
    """The lines of a table of chapters and settings."""
    rows = [["chapter", *found]]
    for name in names:
        rows.append([name, *(str(results.get(name, Result())) for results in found.values())])
    rows.append(["all", *(_total(results.values()) for results in found.values())])
    sizes = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(f"{cell:{size}}" for cell, size in zip(row, sizes, strict=True)).rstrip()
        for row in rows
    ]


def _total(results: Iterable[Result]) -> str:
    listed = list(results)
    return str(
        Result(
            sum(one.cells for one in listed),
            [cell for one in listed for cell in one.different],
            sum(one.seconds for one in listed),
        )
    )
