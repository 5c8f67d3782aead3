"""The result: rows as `vellum bench report` and `vellum bench compare` read them, and a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median
from typing import Any

from contest import Cell, Sample

#: The handler that the others are compared with.
BASELINE = "FileHandler"


@dataclass
class Case:
    """One handler in one cell."""

    name: str
    cell: Cell
    samples: list[Sample] = field(default_factory=list)
    skipped: str | None = None
    failed: str | None = None

    @property
    def is_running(self) -> bool:
        """Does it take part in the next round?"""
        return self.skipped is None and self.failed is None

    @property
    def is_verified(self) -> bool:
        """Was every line of every round there, once and whole?"""
        return bool(self.figures()) and all(sample.counts.is_good for sample in self.samples)

    def figures(self) -> list[Sample]:
        """The samples, none if it failed."""
        return self.samples if self.is_running else []

    def speeds(self) -> list[float]:
        """Lines per second, round by round."""
        return [sample.lines_per_second for sample in self.figures()]

    def ratios(self, cases: list[Case]) -> list[float]:
        """The speeds by those of the baseline in the same round."""
        same_cell = (case for case in cases if case.cell == self.cell)
        base = next((case for case in same_cell if case.name == BASELINE), None)
        speeds = base.speeds() if base else []
        return [own / other for own, other in zip(self.speeds(), speeds)]


def document(cases: list[Case], conditions: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The report in the form of `vellum bench`."""
    return {
        "format": 2,
        "suite": "python",
        "conditions": conditions,
        "rounds": rounds,
        "warnings": [],
        "rows": {_name(case): _row(case, cases, conditions) for case in cases},
    }


def _name(case: Case) -> str:
    """What tells a row from all others."""
    return f"{case.name}, {title(case.cell)}"


def _row(case: Case, cases: list[Case], conditions: dict[str, Any]) -> dict[str, Any]:
    cell, mount = case.cell, conditions["filesystem"]
    keys = {
        "filesystem": mount["kind"] if mount else "unknown",
        "processes": cell.processes,
        "lines of each": cell.lines_each,
        "format": cell.format_name,
        "rotation": rotation_name(cell),
        "handler": case.name,
    }
    return {
        "table": title(cell),
        "keys": {name: str(value) for name, value in keys.items()},
        "metrics": {name: it for name, it in _metrics(case, cases).items() if it["samples"]},
        "verified": case.is_verified,
        "skipped": case.skipped,
        "failed": case.failed,
    }


def _metrics(case: Case, cases: list[Case]) -> dict[str, dict[str, Any]]:
    samples = case.figures()
    counts = {
        "lost": [sample.counts.lost for sample in samples],
        "torn": [sample.counts.torn for sample in samples],
        "doubled": [sample.counts.doubled for sample in samples],
        "errors": [sample.errors for sample in samples],
        "files": [sample.files for sample in samples],
    }
    return {
        "speed": _metric("lines/s", "higher", case.speeds()),
        f"speed against {BASELINE}": _metric("x", "higher", case.ratios(cases)),
        **{name: _metric("", "neither", values) for name, values in counts.items()},
    }


def _metric(unit: str, better: str, samples: list[float] | list[int]) -> dict[str, Any]:
    values = [float(sample) for sample in samples]
    middle = {"min": min(values), "median": median(values), "max": max(values)} if values else {}
    return {"unit": unit, "better": better, **middle, "samples": values}


def rotation_name(cell: Cell) -> str:
    """`off`, or at how many bytes."""
    return f"{cell.bytes_max} B" if cell.bytes_max else "off"


def title(cell: Cell) -> str:
    """The heading of the table of a cell."""
    plural = "es" if cell.processes > 1 else ""
    return (
        f"{cell.processes} process{plural} × {cell.lines_each} lines, format {cell.format_name}, "
        f"rotation {rotation_name(cell)}"
    )


HEADINGS = ("handler", "lines/s", "min–max", "× File", "min–max", "lost", "torn", "doubled", "errors")


def tables(cases: list[Case]) -> str:
    """A table for each cell; lines are counted over all rounds."""
    cells = dict.fromkeys(case.cell for case in cases)
    return "".join(_table(cell, [case for case in cases if case.cell == cell]) for cell in cells)


def _table(cell: Cell, cases: list[Case]) -> str:
    rows = [HEADINGS, *(_cells(case, cases) for case in cases)]
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = [title(cell), *(_aligned(row, widths) for row in rows)]
    reasons = [(case.name, case.failed or case.skipped) for case in cases]
    lines += [f"{name}: {reason}" for name, reason in reasons if reason]
    return "".join(f"{line}\n" for line in ["", *lines])


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    name, *figures = row
    cells = [text.rjust(width) for text, width in zip(figures, widths[1:])]
    return "  ".join([name.ljust(widths[0]), *cells])


def _cells(case: Case, cases: list[Case]) -> tuple[str, ...]:
    samples = case.figures()
    if not samples:
        return (case.name, *("–" for _ in HEADINGS[1:]))
    counts = [sample.counts for sample in samples]
    totals = (
        sum(count.lost for count in counts),
        sum(count.torn for count in counts),
        sum(count.doubled for count in counts),
        sum(sample.errors for sample in samples),
    )
    ratios = _spread(case.ratios(cases), ".2f")
    return (case.name, *_spread(case.speeds(), ".0f"), *ratios, *map(str, totals))


def _spread(samples: list[float], form: str) -> tuple[str, str]:
    """The middle, and from the smallest to the largest."""
    if not samples:
        return ("–", "–")
    return (f"{median(samples):{form}}", f"{min(samples):{form}}–{max(samples):{form}}")
