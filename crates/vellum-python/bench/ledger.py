"""Is all of it there? Each line once and whole, in the files of any handler.

A line names itself, ``request 4711 took 83 us``: no two processes of a round use the same number, and
the time follows from the number, so that a line made of two others is taken for neither.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# : The message that the program logs, with number and time.
MESSAGE = "request %d took %d us"

#: The formats by name, as given to `logging.Formatter`; without one, a line is its message.
FORMATS = {
    "full": "%(asctime)s %(levelname)s %(process)d %(message)s",
    "message": None,
}

_HEADS = {
    "full": rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO \d+ ",
    "message": rb"",
}


def took_us(number: int) -> int:
    """The time in line `number`."""
    return number * 7919 % 100_003


@dataclass(frozen=True)
class Counts:
    """What is wrong. A torn line is not the line that it was, so it is counted as lost too."""

    lost: int
    torn: int
    doubled: int

    @property
    def is_good(self) -> bool:
        """Is nothing wrong?"""
        return not (self.lost or self.torn or self.doubled)


def count(files: Iterable[Path], format_name: str, lines: int) -> Counts:
    """Reads all `files` and looks for the lines 0 to `lines` - 1."""
    whole = re.compile(_HEADS[format_name] + rb"request (\d+) took (\d+) us\n")
    seen = bytearray(lines)
    torn = doubled = 0
    for path in files:
        with path.open("rb") as file:
            for line in file:
                number = _number(whole.fullmatch(line), lines)
                if number is None:
                    torn += 1
                elif seen[number]:
                    doubled += 1
                else:
                    seen[number] = 1
    return Counts(lost=seen.count(0), torn=torn, doubled=doubled)


def _number(match: re.Match[bytes] | None, lines: int) -> int | None:
    """Which line it is, if it is one that was logged."""
    if match is None:
        return None
    number, took = int(match[1]), int(match[2])
    return number if number < lines and took == took_us(number) else None
