"""The programs that the pages show do what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import lines

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "crates/vellum-python/README.md"])
def test_the_first_program_of_a_page_logs_its_line(page: str, tmp_path: Path) -> None:
    program = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)[0]
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)
    (line,) = lines(str(tmp_path / "app.log"))
    assert re.fullmatch(r"[\d-]{10} [\d:]{8},\d{3} INFO \d+ from any thread .* fork\n?", line)
