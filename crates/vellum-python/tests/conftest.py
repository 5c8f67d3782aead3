"""What the tests share: logs in a temporary directory, and programs that are run and killed."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from vellum_log import Log, VellumHandler


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a log can be made."""
    return str(tmp_path / "app.log")


@pytest.fixture
def directory(path: str) -> str:
    """The same, as a directory: a text log is then in it, and not beside it."""
    os.mkdir(path)
    return path


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """A logger of its own, without handlers before and after."""
    logger = logging.Logger("app", logging.DEBUG)
    yield logger
    for handler in list(logger.handlers):
        logger.removeHandler(handler)
        handler.close()


@pytest.fixture
def run_python() -> Callable[..., subprocess.Popen[str]]:
    """Starts a program given as text, with arguments."""

    def run(program: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    return run


def lines(path: str) -> list[str]:
    """All lines of a text log, oldest first; what the dead left unfinished is padded first."""
    with Log(path, create=False) as log:
        return [record.payload.decode("utf-8", "surrogateescape") for record in log.read()]


def missing(why: str) -> NoReturn:
    """Skips the test, or fails it where everything has to run."""
    if os.environ.get("VELLUM_REQUIRE") == "all":
        pytest.fail(f"VELLUM_REQUIRE=all, and {why}")
    pytest.skip(why)


def in_child(act: Callable[[], object]) -> int:
    """Runs `act` in a forked child; returns its exit status."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            act()
            status = 0
        except BaseException:
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def handler_to(path: str, **options: object) -> VellumHandler:
    """A handler that shows levels and messages."""
    handler = VellumHandler(path, **options)  # type: ignore[arg-type]
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    return handler


def check_every_line_once(found: list[str], counts: dict[str, int], may_lack: int = 0) -> None:
    """Lines `<writer> <number> <filling>` of each writer are there once, whole, in order, and at
    least up to the number that it has acknowledged (the last ones of a killed writer may be there
    or not)."""
    seen: dict[str, int] = {}
    for line in found:
        writer, number, filling = line.rstrip("\n").split(" ")
        assert line.endswith("\n") and filling == "x" * (int(number) % 97), line
        assert int(number) == seen.get(writer, 0), f"{writer} comes to {number}"
        seen[writer] = int(number) + 1
    for writer, count in counts.items():
        assert seen.get(writer, 0) >= count, f"{writer} has lost lines"
        assert seen.get(writer, 0) <= count + may_lack, f"{writer} has lines too many"
