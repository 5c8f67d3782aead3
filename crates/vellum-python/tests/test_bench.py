"""The comparison of handlers: what it counts, and that `vellum bench` would read what it writes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"
sys.path.insert(0, str(BENCH))

import ledger  # noqa: E402

HEAD = "2026-11-22 02:22:52,123 INFO 4711 "


def line(number: int, head: str = HEAD) -> str:
    return f"{head}{ledger.MESSAGE % (number, ledger.took_us(number))}\n"


def counted(tmp_path: Path, *files: str, format_name: str = "full", lines: int = 3) -> ledger.Counts:
    paths = [tmp_path / f"app.log.{index}" for index in range(len(files))]
    for path, text in zip(paths, files):
        path.write_text(text)
    return ledger.count(paths, format_name, lines)


def test_all_lines_in_any_file_and_order_are_good(tmp_path):
    assert counted(tmp_path, line(2) + line(0), line(1)).is_good
    assert counted(tmp_path, line(1, "") + line(0, ""), format_name="message", lines=2).is_good


def test_a_line_that_is_missing_is_lost(tmp_path):
    assert counted(tmp_path, line(0) + line(2)) == ledger.Counts(1, 0, 0)
    assert counted(tmp_path) == ledger.Counts(3, 0, 0)


def test_a_line_in_two_files_is_doubled(tmp_path):
    both = counted(tmp_path, line(0) + line(1) + line(2), line(1))
    assert both == ledger.Counts(0, 0, 1)


@pytest.mark.parametrize(
    "torn",
    [
        line(1)[:-1],
        line(1)[:40] + line(1),
        line(1).replace("request 1", "request 2"),
        line(1).replace("INFO", "IN\0O"),
        line(99),
    ],
)
def test_a_line_that_nobody_logged_is_torn(tmp_path, torn):
    assert counted(tmp_path, line(0) + line(2) + torn) == ledger.Counts(1, 1, 0)


def test_a_run_tells_what_it_measured(tmp_path):
    arguments = ["--lines=600", "--rounds=2", "--processes=3", "--max-bytes=5000", "--json=-"]
    arguments += ["--handlers=FileHandler,RotatingFileHandler,QueueHandler", f"--dir={tmp_path}"]
    command = [sys.executable, str(BENCH / "handlers.py"), *arguments]
    run = subprocess.run(command, capture_output=True, timeout=300, check=True)
    document = json.loads(run.stdout)
    assert (document["format"], document["suite"], len(document["rows"])) == (2, "python", 12)
    for case in document["rows"].values():
        metrics = {name: metric["samples"] for name, metric in case["metrics"].items()}
        assert len(metrics["speed"]) == len(metrics["lost"]) == 2
        assert case["verified"] == (not any(metrics["lost"] + metrics["torn"] + metrics["doubled"]))
        if case["keys"]["handler"] != "RotatingFileHandler":
            assert case["verified"]
    assert not list(tmp_path.iterdir()), "a run leaves nothing"
