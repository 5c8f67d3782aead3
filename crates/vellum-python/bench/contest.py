"""One handler, one cell, one time: log under the clock from all processes, then count what is there."""

from __future__ import annotations

import logging
import multiprocessing
import shutil
import tempfile
import time
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from contenders import Contender, Rotation
from ledger import FORMATS, MESSAGE, Counts, count, took_us

#: Forked, as web servers do it: the processes share nothing but the path.
_processes = multiprocessing.get_context("fork")

#: How long a round may take before its processes are killed and the handler has failed.
PATIENCE_SECONDS = 600.0

#: A line in the format `full`, about: for how many files there may be.
_LINE_BYTES = 80


@dataclass(frozen=True)
class Cell:
    """What all handlers meet alike."""

    processes: int
    #: Each process logs so many lines.
    lines_each: int
    format_name: str
    #: When a new file begins; 0 for never.
    bytes_max: int

    @property
    def lines(self) -> int:
        """Of all processes."""
        return self.processes * self.lines_each

    def rotation(self) -> Rotation | None:
        """For the handlers that rotate."""
        if not self.bytes_max:
            return None
        return Rotation.keeping_all(self.bytes_max, self.lines * _LINE_BYTES, self.processes)

    def formatter(self) -> logging.Formatter:
        """The line as the processes, or the listener, write it."""
        return logging.Formatter(FORMATS[self.format_name])


@dataclass(frozen=True)
class Sample:
    """What one round came to."""

    lines_per_second: float
    counts: Counts
    # : How often a handler reported an error (`logging.Handler.handleError`).
    errors: int
    #: How many files there are: more than one if the handler rotates.
    files: int


class Failure(Exception):
    """Why a round has no result."""


class _Shared:
    """What the parent and the processes of a round have in common."""

    def __init__(self, processes: int) -> None:
        self.ready = _processes.Semaphore(0)
        self.gate = _processes.Event()
        self.finished_ns = _processes.Array("q", processes, lock=False)
        self.errors = _processes.Array("q", processes, lock=False)


def measure(contender: Contender, cell: Cell, inside: Path) -> Sample:
    """Logs what `cell` says into a new directory in `inside`, which is removed again."""
    directory = Path(tempfile.mkdtemp(dir=inside))
    try:
        contender.begin(directory, cell.rotation(), cell.formatter())
        elapsed_ns, errors = _race(contender, cell, directory)
        files = contender.files(directory)
        counts = count(files, cell.format_name, cell.lines)
        return Sample(cell.lines * 1e9 / elapsed_ns, counts, errors, len(files))
    finally:
        shutil.rmtree(directory)


def _race(contender: Contender, cell: Cell, directory: Path) -> tuple[int, int]:
    """From the opening of the gate until the last line is in the file; and how many errors."""
    shared = _Shared(cell.processes)
    team = [
        _processes.Process(target=_work, args=(contender, cell, directory, index, shared))
        for index in range(cell.processes)
    ]
    try:
        for process in team:
            process.start()
        _await_ready(team, shared)
        contender.attend()
        begun_ns = time.monotonic_ns()
        shared.gate.set()
        _await_exits(team)
        waited = contender.finish()
        ended_ns = time.monotonic_ns() if waited else max(shared.finished_ns)
    finally:
        _kill(team)
    return ended_ns - begun_ns, sum(shared.errors)


def _work(contender: Contender, cell: Cell, directory: Path, index: int, shared: _Shared) -> None:
    """What each process does."""
    handler = contender.open(directory, cell.rotation())
    if contender.formats_in_process:
        handler.setFormatter(cell.formatter())
    _count_errors(handler, index, shared)
    logger = logging.Logger("bench", logging.INFO)
    logger.addHandler(handler)
    first = index * cell.lines_each
    shared.ready.release()
    shared.gate.wait()
    for number in range(first, first + cell.lines_each):
        logger.info(MESSAGE, number, took_us(number))
    contender.leave(handler)
    shared.finished_ns[index] = time.monotonic_ns()


def _count_errors(handler: logging.Handler, index: int, shared: _Shared) -> None:
    """An error is counted in place of the traceback that a handler prints."""

    def note(record: logging.LogRecord) -> None:
        shared.errors[index] += 1

    handler.handleError = note  # type: ignore[method-assign]


def _await_ready(team: list[BaseProcess], shared: _Shared) -> None:
    for _ in team:
        while not shared.ready.acquire(timeout=1.0):
            _check(team)


def _await_exits(team: list[BaseProcess]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    for process in team:
        process.join(max(0.0, deadline - time.monotonic()))
    if any(process.is_alive() for process in team):
        raise Failure(f"had not finished after {PATIENCE_SECONDS:.0f} s and was killed")
    _check(team)


def _check(team: list[BaseProcess]) -> None:
    for index, process in enumerate(team):
        if process.exitcode:
            raise Failure(f"process {index} ended with exit code {process.exitcode}")


def _kill(team: list[BaseProcess]) -> None:
    for process in team:
        if process.pid is not None:
            process.kill()
            process.join()
