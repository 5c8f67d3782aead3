"""The programs that the pages show do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import lines

ROOT = Path(__file__).resolve().parents[3]


PAGES = [
    ("README.md", "web.log"),
    ("docs/python.md", "app.log"),
    ("crates/vellum-python/README.md", "app.log"),
]


def programs(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.parametrize(("page", "log"), PAGES)
def test_the_first_program_of_a_page_logs_its_line(page: str, log: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", programs(page)[0]], cwd=tmp_path, check=True)
    (line,) = lines(str(tmp_path / log))
    assert re.fullmatch(r"[\d-]{10} [\d:]{8},\d{3} INFO \d+ from any thread .* fork\n?", line)


def test_the_pages_show_the_write_ahead_log_as_it_works(tmp_path: Path) -> None:
    for page in ["docs/python.md", "crates/vellum-python/README.md"]:
        shown = [program for program in programs(page) if 'Log("orders.wal", kind="wal")' in program]
        program = next(program for program in shown if "asyncio" not in program)
        run = [sys.executable, "-c", program]
        printed = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, timeout=60)
        assert b"an order" in printed.stdout


def test_the_page_shows_how_an_event_loop_ships_what_is_durable(tmp_path: Path) -> None:
    program = next(p for p in programs("docs/python.md") if "follow_async" in p)
    run = [sys.executable, "-c", program]
    printed = subprocess.run(run, cwd=tmp_path, check=True, capture_output=True, timeout=60)
    assert b"the last order" in printed.stdout
