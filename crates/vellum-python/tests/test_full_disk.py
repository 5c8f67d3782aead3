"""What becomes of records on a full disk: an error, a count, or a wait."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import handler_to, lines, missing
from vellum_log import VellumHandler


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 2 MiB, which a file `ballast` fills up."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        missing("mounting a small filesystem takes root")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def fill_up(disk: Path) -> None:
    with open(disk / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def log_until_full(disk: Path, logger: logging.Logger, on_full: str) -> str:
    """Logs more than there is room for on a full disk; returns the log's path."""
    path = str(disk / "app.log")
    logger.addHandler(handler_to(path, segment_capacity_bytes=65536, on_full=on_full))
    fill_up(disk)
    for number in range(100):
        logger.info("%d %s", number, "x" * 2000)
    return path


def log_until_not_dropped(logger: logging.Logger, text: str) -> int:
    """Logs `text` until it is noticed that there is space; returns how often it was dropped."""
    (handler,) = logger.handlers
    assert isinstance(handler, VellumHandler)
    before = handler.log.stat()["dropped"]
    tries = 0
    while True:
        tries += 1
        logger.info(text)
        dropped = handler.log.stat()["dropped"] - before
        if dropped < tries:
            return dropped


def test_a_full_disk_is_an_error_of_each_record(
    small_disk: Path, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log_until_full(small_disk, logger, "error")
    refused = capsys.readouterr().err.count("vellum_log.errors.NoSpace: ")
    assert 0 < refused < 100
    (small_disk / "ballast").unlink()
    logger.info("room again")
    found = lines(path)
    assert len(found) == 100 - refused + 1 and found[-1] == "INFO room again\n"


def test_a_full_disk_drops_records_and_says_how_many(
    small_disk: Path, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    path = log_until_full(small_disk, logger, "drop")
    assert capsys.readouterr().err == ""
    (small_disk / "ballast").unlink()
    dropped = log_until_not_dropped(logger, "room again")
    *kept, told, last = lines(path)
    assert f"{100 - len(kept) + dropped} records dropped" in told and last == "INFO room again\n"


def test_a_full_disk_blocks_one_thread_and_not_the_others(
    small_disk: Path, logger: logging.Logger
) -> None:
    thread = threading.Thread(target=log_until_full, args=(small_disk, logger, "block"))
    thread.start()
    # The thread fills the disk up itself; this one is needed to make room.
    while os.statvfs(small_disk).f_bavail > 0 and thread.is_alive():
        pass
    with contextlib.suppress(FileNotFoundError):
        (small_disk / "ballast").unlink()
    thread.join()
    numbers = [line.split()[1] for line in lines(str(small_disk / "app.log"))]
    assert numbers == [str(number) for number in range(100)]


CUT = """
import faulthandler, pathlib, sys
import vellum_log
faulthandler.enable()
log = vellum_log.Log(sys.argv[1], fill="mapped")
vellum_log.guard_bus_errors()
log.append(b"one")
next(pathlib.Path(sys.argv[1]).glob("*.seg")).write_bytes(b"")
try:
    log.append(b"two")
except vellum_log.Corrupt:
    print("an exception")
"""


def test_a_file_that_was_cut_is_an_exception_beside_faulthandler(tmp_path: Path) -> None:
    program = [sys.executable, "-c", CUT, str(tmp_path / "log")]
    assert subprocess.run(program, capture_output=True, text=True).stdout == "an exception\n"
