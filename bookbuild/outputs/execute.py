"""Executes chapters in parallel, each in a fresh kernel."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from copy import deepcopy
from importlib.metadata import version

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from traitlets.config import Config

from bookbuild.book import Book
from bookbuild.chapter import Chapter, code_cells
from bookbuild.checks.check_outputs import output_problems
from bookbuild.errors import BookError
from bookbuild.outputs.digest import outputs_digest, package_digest, source_digest
from bookbuild.outputs.kernels import connection
from lnbook._build import SILENCE

# Timeouts, also used for comparing references (tests/conftest.py). The slowest cell takes 25 s on
# an idle machine, and several times as long on a busy one or with rounding noise.
SECONDS_PER_CELL = 1800
SECONDS_A_MESSAGE = 300  # for a kernel to start, or to send a cell's output
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def execute_all(
    book: Book, chapters: Iterable[Chapter], keep: Callable[[Chapter, NotebookNode], None]
) -> None:
    """Run chapters in parallel, pass each result to `keep`, and print progress.

    Raises:
        BookError: after all have run, with one line per failed chapter.
    """
    chapters = list(chapters)
    if not chapters:
        return
    workers = min(len(chapters), os.cpu_count() or 1)
    print(f"Executing {len(chapters)} chapter(s), {workers} at a time", flush=True)
    problems: list[str] = []
    with ThreadPoolExecutor(workers) as pool:
        started = {pool.submit(_timed, book, chapter): chapter for chapter in chapters}
        for done, future in enumerate(as_completed(started), start=1):
            chapter = started[future]
            try:
                notebook, seconds = future.result()
            except BookError as error:
                problems.extend(error.problems)
                print(f"  [{done}/{len(chapters)}] {chapter.name}: failed", flush=True)
                continue
            keep(chapter, notebook)
            print(f"  [{done}/{len(chapters)}] {chapter.name}: {seconds:.1f} s", flush=True)
    if problems:
        raise BookError(*problems)


def _timed(book: Book, chapter: Chapter) -> tuple[NotebookNode, float]:
    start = time.perf_counter()
    return execute(book, chapter), time.perf_counter() - start


def execute(book: Book, chapter: Chapter) -> NotebookNode:
    """Run one chapter and return it with its outputs and their digests.

    Raises:
        BookError: if a cell raises, times out, kills its kernel or has an invalid output.
    """
    notebook = deepcopy(chapter.notebook)
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        startup_timeout=SECONDS_A_MESSAGE,
        iopub_timeout=SECONDS_A_MESSAGE,
        kernel_name=notebook.metadata.kernelspec.name,
        resources={"metadata": {"path": str(chapter.path.parent)}},
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        config=Config(KernelManager=connection()),
    )
    digests = {"source": source_digest(book, chapter), "package": package_digest(book, chapter)}
    try:
        client.execute(env={**os.environ, SILENCE: "1"})
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise BookError(_failure(book, chapter, notebook, error)) from None
    if problems := output_problems(chapter, notebook):
        raise BookError(*problems)
    notebook.metadata["language_info"] = {"name": "python"}
    notebook.metadata["lnbook"] = {
        **digests,
        "outputs": outputs_digest(notebook),
        "torch": version("torch").partition("+")[0],
    }
    return notebook


def _failure(book: Book, chapter: Chapter, notebook: NotebookNode, error: Exception) -> str:
    """One line that says what failed and where; the traceback goes to a file."""
    cells = code_cells(notebook)
    errors = [
        (number, output)
        for number, cell in enumerate(cells)
        for output in cell.outputs
        if output.output_type == "error"
    ]
    if errors:
        number, output = errors[-1]
        what = f"raised {output.ename}: {(output.evalue.splitlines() or [''])[0]}"
        text = "\n".join(output.traceback)
    else:
        unfinished = [n for n, cell in enumerate(cells) if cell.execution_count is None]
        number, text = (unfinished or [len(cells) - 1])[0], str(error)
        slow = isinstance(error, CellTimeoutError)
        what = f"ran longer than {SECONDS_PER_CELL} s" if slow else "lost its kernel"
    log = book.build / "errors" / f"{chapter.name.replace('/', '-')}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(ANSI.sub("", text) + "\n", encoding="utf-8")
    return f"{chapter.where(number)} {what} (traceback in {book.show(log)})"
