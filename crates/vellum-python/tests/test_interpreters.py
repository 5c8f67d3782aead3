"""Two interpreters of one process that share the GIL, as mod_wsgi makes them: both log, or the second
one is refused before it has logged anything, and the first one loses nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import vellum_log
from conftest import lines, missing

LINES = 2000
VERSIONS = [(3, minor) for minor in range(10, 15)]

#: Runs a program in each of two more interpreters, between two runs of its own.
PROGRAM = """
import json, sys

try:
    import _interpreters as interpreters
    create = lambda: interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    create = lambda: interpreters.create(isolated=False)

APPLICATION = '''
import json, logging, sys
sys.path.insert(0, {package!r})
told = None
try:
    from vellum_log import VellumHandler
    from vellum_log import Log
except ImportError as error:
    told = str(error)
else:
    logger = logging.Logger("app")
    handler = VellumHandler({path!r})
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    logger.addHandler(handler)
    for number in range({lines}):
        logger.error("line %d of %s", number, "one")
    handler.close()
open({path!r} + ".told", "w").write(json.dumps(told))
'''

package, lines, *paths = sys.argv[1:]
programs = [APPLICATION.format(package=package, lines=lines, path=path) for path in paths]
exec(programs[0])
for program in programs[1:-1]:
    failed = interpreters.run_string(create(), program)
    assert failed is None, failed
exec(programs[-1])
"""


@cache
def python(version: tuple[int, int]) -> str | None:
    """A Python of this version, where this machine has one."""
    name = "python{}.{}".format(*version)
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    places = [sys.executable, shutil.which(name), *root.glob(f"versions/*/bin/{name}")]
    show = "import sys; print(list(sys.version_info[:2]))"
    for place in filter(None, places):
        ran = subprocess.run([place, "-c", show], capture_output=True, text=True)
        if ran.returncode == 0 and json.loads(ran.stdout) == list(version):
            return str(place)
    return None


def log_in_interpreters(version: tuple[int, int], tmp_path: Path) -> list[tuple[str | None, int]]:
    """For each run, in the first interpreter, two others and the first one again: what it was told
    when it was refused, and how many lines it wrote."""
    program = python(version)
    if program is None:
        missing("Python {}.{} is not installed".format(*version))
    package = tmp_path / "package"
    package.mkdir()
    (package / "vellum_log").symlink_to(Path(vellum_log.__file__).parent)
    paths = [tmp_path / f"{number}.log" for number in range(4)]
    command = [program, "-B", "-c", PROGRAM, str(package), str(LINES), *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, ""), ran
    told = [json.loads(Path(f"{path}.told").read_text()) for path in paths]
    counts = [len(lines(str(path))) if path.exists() else 0 for path in paths]
    return list(zip(told, counts))


@pytest.mark.parametrize("version", [version for version in VERSIONS if version < (3, 12)])
def test_interpreters_that_share_classes_all_log(version: tuple[int, int], tmp_path: Path) -> None:
    if python(version) is None and any(map(python, VERSIONS[:2])):
        pytest.skip("one such Python is enough")
    assert log_in_interpreters(version, tmp_path) == [(None, LINES)] * 4


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= (3, 12)])
def test_the_second_interpreter_is_refused_and_the_first_one_goes_on(
    version: tuple[int, int], tmp_path: Path
) -> None:
    if python(version) is None and any(map(python, VERSIONS[2:])):
        pytest.skip("one such Python is enough")
    first, *refused, last = log_in_interpreters(version, tmp_path)
    assert (first, last) == ((None, LINES), (None, LINES))
    for told, count in refused:
        assert count == 0 and told is not None
        assert told.startswith("another interpreter of this process uses vellum_log already"), told
        assert "WSGIApplicationGroup %{GLOBAL}" in told
