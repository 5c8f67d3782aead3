"""A program that opens its log as root and then becomes another user, as servers with workers do."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import lines, missing

USER = 61234
LINES = 500

#: Opens the log as root, logs in a child or here as another user, and prints the warnings it got.
PROGRAM = """
import logging, os, sys, warnings
from vellum_log import VellumHandler

path, user, lines, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
logging.raiseExceptions = False
logger = logging.Logger("app")
logger.addHandler(VellumHandler(path, maxBytes=2000))
logger.error("of root")

if how == "at the first record":
    logger.handlers = [VellumHandler(path, delay=True)]

def work():
    os.setgroups([]); os.setgid(user); os.setuid(user)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(lines):
            logger.error("line %d", number)
    for warning in caught:
        print(warning.category.__name__, warning.message)
    sys.stdout.flush()

if how != "in the same process":
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
else:
    work()
"""


@pytest.fixture
def log_as_another_user(
    run_python: Callable[..., subprocess.Popen[str]],
) -> Callable[[str, str], list[str]]:
    def run(path: str, how: str) -> list[str]:
        child = run_python(PROGRAM, path, USER, LINES, how)
        said, complaint = child.communicate()
        assert (child.returncode, complaint) == (0, "")
        return said.splitlines()

    if os.geteuid() != 0:
        missing("becoming another user takes root")
    return run


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A directory that every user may pass through."""
    for directory in [tmp_path, *tmp_path.parents[:2]]:
        directory.chmod(0o755)
    return tmp_path


HOWS = ["in a child", "in the same process", "at the first record"]


@pytest.mark.parametrize("how", HOWS)
def test_a_log_of_root_is_warned_of_once_with_the_remedy(
    public: Path, log_as_another_user: Callable[[str, str], list[str]], how: str
) -> None:
    path = str(public / "app.log")
    (warning,) = log_as_another_user(path, how)
    by = "" if how == "at the first record" else ", which user 0 opened"
    assert warning.startswith(f"RuntimeWarning user {USER} may not write to {path}{by}: "), warning
    remedy = f"chown -R {USER} {path}.d"
    assert remedy in warning
    written = len(lines(path))
    assert written < 1 + LINES

    assert subprocess.run(remedy.split()).returncode == 0
    assert log_as_another_user(path, how) == []
    assert len(lines(path)) == written + 1 + LINES


@pytest.mark.parametrize("how", HOWS)
def test_a_directory_that_was_given_to_the_user_before_takes_everything(
    public: Path, log_as_another_user: Callable[[str, str], list[str]], how: str
) -> None:
    path = public / "app.log"
    path.mkdir()
    shutil.chown(path, USER)
    assert log_as_another_user(str(path), how) == []
    assert len(lines(str(path))) == 1 + LINES
