#!/usr/bin/env python3
"""Several processes log into one file: how fast, and is every line there afterwards?

Compares handlers for Python's `logging`. In each round every handler takes its turn in a directory
of its own, one after the other, so that whatever changes on the machine meets all of them; a first
round is not counted. After each turn all files are read, and lines that are lost, torn or doubled
are counted. The clock runs from the moment all processes stand ready until all lines are in files.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import conditions
import contenders
import report
from contest import Cell, Failure, measure
from ledger import FORMATS


def main() -> int:
    """Runs what the command line asks for. 1 if Vellum lost a line or a handler failed."""
    arguments = _parser().parse_args()
    cases, surroundings = run(arguments)
    document = report.document(cases, surroundings, arguments.rounds)
    text = json.dumps(document, indent=1, ensure_ascii=False) + "\n"
    if arguments.json == "-":
        print(text, end="")
    else:
        print(*conditions.lines(surroundings), sep="\n")
        print(report.tables(cases), end="")
        if arguments.json:
            Path(arguments.json).write_text(text)
    return int(any(map(_is_bad, cases)))


def run(arguments: argparse.Namespace) -> tuple[list[report.Case], dict[str, Any]]:
    """All cells, one after the other."""
    chosen = _chosen(arguments.handlers)
    software = list(dict.fromkeys(text for one in chosen if (text := one.software())))
    surroundings = conditions.now(arguments.dir, software)
    cases = []
    with tempfile.TemporaryDirectory(prefix="vellum-bench-", dir=arguments.dir) as home:
        for cell in _cells(arguments):
            cases += contest(chosen, cell, arguments.rounds, Path(home))
    return cases, surroundings


def contest(
    chosen: list[contenders.Contender], cell: Cell, rounds: int, home: Path
) -> list[report.Case]:
    """All handlers in one cell, in interleaved rounds."""
    print(report.title(cell), file=sys.stderr)
    cases = [report.Case(one.name, cell, skipped=one.missing()) for one in chosen]
    for round_number in range(rounds + 1):
        for contender, case in zip(chosen, cases):
            if case.is_running:
                _step(contender, case, is_counted=round_number > 0, home=home)
    return cases


def _step(contender: contenders.Contender, case: report.Case, is_counted: bool, home: Path) -> None:
    try:
        sample = measure(contender, case.cell, home)
    except (Failure, OSError) as error:
        case.failed = str(error)
        return
    if is_counted:
        case.samples.append(sample)


def _is_bad(case: report.Case) -> bool:
    is_ours = case.name == contenders.Vellum.name and case.skipped is None
    return case.failed is not None or (is_ours and not case.is_verified)


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    limits = [arguments.max_bytes if word == "on" else 0 for word in arguments.rotation]
    return [
        Cell(processes, arguments.lines // processes, format_name, bytes_max)
        for bytes_max, format_name, processes in product(
            limits, arguments.formats, arguments.processes
        )
    ]


def _chosen(names: list[str] | None) -> list[contenders.Contender]:
    known = {one.name: one for one in contenders.every_one()}
    return [known[name] for name in names or known]


def _parser() -> argparse.ArgumentParser:
    names = [one.name for one in contenders.every_one()]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--dir", type=Path, default=Path("."), help="on the filesystem of interest [.]")
    add("--processes", type=_numbers, default=[1, 4, 8], help="how many log at once [1,4,8]")
    add("--lines", type=int, default=200_000, help="of all processes together [200000]")
    add("--rounds", type=int, default=5, help="how many are counted [5]")
    add("--formats", type=_words(list(FORMATS)), default=list(FORMATS), help="[full,message]")
    add("--rotation", type=_words(["off", "on"]), default=["off", "on"], help="[off,on]")
    add("--max-bytes", type=int, default=10_000_000, help="rotation on: at which size [10000000]")
    add("--handlers", type=_words(names), help="which, separated by commas [all]")
    add("--json", metavar="FILE", help="for `vellum bench report` and `compare`; - prints it")
    return parser


def _numbers(text: str) -> list[int]:
    numbers = [int(word) for word in text.split(",")]
    if min(numbers) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return numbers


def _words(known: list[str]) -> Callable[[str], list[str]]:
    def words(text: str) -> list[str]:
        for word in text.split(","):
            if word not in known:
                raise argparse.ArgumentTypeError(f"{word} is none of {', '.join(known)}")
        return text.split(",")

    return words


if __name__ == "__main__":
    sys.exit(main())
