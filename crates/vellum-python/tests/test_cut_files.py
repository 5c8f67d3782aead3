"""A log whose file another program cuts, as `logrotate` does where it is told `copytruncate`."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from conftest import lines


@pytest.fixture
def path(directory: str) -> str:
    """The log is a directory here, and its files are looked at."""
    return directory

#: Logs from three threads each time it is told to, until its standard input ends.
LOGGER = textwrap.dedent("""
    import logging, sys, threading
    from vellum_log import VellumHandler

    logger = logging.Logger("app")
    logger.addHandler(VellumHandler(sys.argv[1], fill=sys.argv[2]))
    logging.raiseExceptions = False

    def log(turn, thread):
        for number in range(300):
            logger.info("turn %d thread %d line %d", turn, thread, number)

    for turn, _ in enumerate(sys.stdin):
        threads = [threading.Thread(target=log, args=(turn, thread)) for thread in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("logged", flush=True)
    logger.info("the last line")
""")

CUTS = 5


@pytest.mark.parametrize("fill", ["mapped", "pwrite"])
def test_a_file_that_is_cut_ends_no_process(path: str, fill: str) -> None:
    command = [sys.executable, "-c", LOGGER, path, fill]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        for turn in range(CUTS + 1):
            process.stdin.write("log\n")
            process.stdin.flush()
            if turn > 0:
                os.truncate((Path(path) / "current").resolve(), 0)
            assert process.stdout.readline() == "logged\n"
        process.stdin.close()
        assert process.wait() == 0
    assert lines(path)[-1].endswith("the last line\n")
