"""What becomes of records whose log is removed or moved while programs write to it."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import vellum_log
from conftest import handler_to, lines


@pytest.fixture
def path(directory: str) -> str:
    """The log is a directory here, and its files are looked at."""
    return directory

PROGRAM = """
    import logging, os, sys
    import vellum_log
    path, name, stop = sys.argv[1:]
    logger = logging.getLogger()
    logger.addHandler(vellum_log.VellumHandler(path, maxBytes=1_000_000, backupCount=0))
    logger.setLevel(logging.INFO)
    os.chdir("/")
    number = 0
    while not os.path.exists(stop):
        logger.info("%s %d", name, number)
        number += 1
    print(number)
"""

RunPython = Callable[..., "subprocess.Popen[str]"]


def wait_for_both(path: str) -> None:
    """Waits until lines of both programs are in the log at `path`."""
    while True:
        try:
            text = Path(path, "current").read_text()
        except OSError:
            continue
        if "a " in text and "b " in text:
            return


def start(run_python: RunPython, path: str, stop: Path) -> list[subprocess.Popen[str]]:
    return [run_python(PROGRAM, path, name, stop) for name in "ab"]


def finish(programs: list[subprocess.Popen[str]], stop: Path) -> dict[str, int]:
    stop.touch()
    counts = {}
    for name, program in zip("ab", programs):
        out, err = program.communicate()
        assert program.returncode == 0 and err == "", err
        counts[name] = int(out)
    return counts


def test_every_line_is_in_the_moved_log_or_in_the_new_one(
    run_python: RunPython, path: str, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    programs = start(run_python, path, stop)
    moved = [str(tmp_path / f"moved{number}") for number in range(2)]
    for to in moved:
        wait_for_both(path)
        os.rename(path, to)
    wait_for_both(path)
    counts = finish(programs, stop)
    found = Counter(line for log in [*moved, path] for line in lines(log))
    expected = {f"{name} {number}\n" for name, count in counts.items() for number in range(count)}
    assert set(found) == expected and set(found.values()) == {1}
    with vellum_log.Log(path, create=False) as log:
        assert log.stat()["policy"]["rotate_bytes"] == 1_000_000
        assert log.stat()["fill"] == "pwrite"


def test_programs_go_on_in_one_log_after_the_old_one_was_removed(
    run_python: RunPython, path: str, tmp_path: Path
) -> None:
    stop = tmp_path / "stop"
    programs = start(run_python, path, stop)
    for _ in range(2):
        wait_for_both(path)
        shutil.rmtree(path, ignore_errors=True)
    wait_for_both(path)
    finish(programs, stop)
    assert lines(path)


def test_a_log_that_was_moved_is_an_error_of_the_log_and_can_be_opened_again(
    path: str, tmp_path: Path
) -> None:
    with vellum_log.Log(path) as log:
        os.rename(path, tmp_path / "moved")
        with pytest.raises(vellum_log.Removed) as caught:
            while True:
                log.append(b"x")
        assert caught.value.kind == vellum_log.ErrorKind.REMOVED == 20
        with log.reopen() as new:
            new.append(b"new")
            assert [record.payload for record in new.read()] == [b"new"]
            assert new.path == path


def test_the_formatter_of_a_handler_stays(
    path: str, tmp_path: Path, logger: logging.Logger
) -> None:
    logger.addHandler(handler_to(path))
    logger.info("before")
    os.rename(path, tmp_path / "moved")
    while not os.path.exists(path):
        logger.info("again")
    assert set(lines(path)) == {"INFO again\n"}
