"""A service of systemd whose system calls are filtered (`SystemCallFilter=`)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

NOT_FOR_SERVICES = Path(__file__).parents[2] / "vellum-testing/src/not-for-services.txt"
KILL, ERRNO, ALLOW = 0x8000_0000, 0x0005_0000, 0x7FFF_0000
LOAD, IF_AT_LEAST, IF_MORE, RETURN = 0x20, 0x35, 0x25, 0x06

PROGRAM = """
import asyncio, logging, os, sys, threading
from vellum_log import Log, VellumHandler, follow_async, guard_bus_errors

guard_bus_errors()
place = sys.argv[1]

def use(kind):
    shared = {"exclusive": False} if kind == "wal" else {}
    with Log(os.path.join(place, kind), kind=kind, **shared) as log:
        first = log.append(b"one\\n")
        log.append_batch([b"two\\n", b"three\\n"])
        log.commit(first)
        log.sync()
        log.append_durable(b"four\\n")
        assert [record.payload for record in log.read()] == [b"one\\n", b"two\\n", b"three\\n", b"four\\n"]
        assert log.read_at(first).payload == b"one\\n"
        follower = log.follow(log.published, timeout=60)
        appending = threading.Thread(target=log.append, args=[b"five\\n"])
        appending.start()
        assert next(follower).payload == b"five\\n"
        appending.join()
        asyncio.run(follow_one(log))
        with log.cursor("mine") as cursor:
            cursor.commit(log.published)
        log.stat(), log.verify()
        if kind.endswith("text"):
            log.rotate()
        else:
            log.set_checkpoint(log.published)
        log.append(b"six\\n")
        child = os.fork()
        if child == 0:
            log.append(b"of the child\\n")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert len(list(log.read())) == 7
        log.trim(log.last_record().lsn)
    list(Log(os.path.join(place, kind)).backwards())

async def follow_one(log):
    async for record in follow_async(log, log.begin):
        return

for kind in ("text", "mapped-text", "events", "wal"):
    use(kind)
handler = VellumHandler(os.path.join(place, "app.log"), maxBytes=10_000, commit_on="ERROR")
handler.emit(logging.LogRecord("app", logging.ERROR, "", 0, "a line", None, None))
handler.doRollover()
handler.close()
"""


def rows() -> Iterator[tuple[int, int]]:
    """The first and the last number of each range of calls that are not for services."""
    for row in NOT_FOR_SERVICES.read_text().splitlines():
        if not row.startswith("#"):
            first, last = row.split()
            yield int(first), int(last)


def filtered(refusal: int) -> None:
    """Has this process filter its calls, and those of what it becomes."""
    steps = [(LOAD, 0, 0, 0)]
    for first, last in rows():
        steps += [(IF_AT_LEAST, 0, 2, first), (IF_MORE, 1, 0, last), (RETURN, 0, 0, refusal)]
    steps.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, by_filter = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, by_filter, program):
        raise OSError(ctypes.get_errno(), "the kernel takes no filter")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("refusal", [KILL, ERRNO | errno.EPERM, ERRNO | errno.ENOSYS])
def test_the_package_does_its_work_in_a_filtered_service(tmp_path: Path, refusal: int) -> None:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM), os.fspath(tmp_path)]
    # Python itself would close descriptors behind the filter, by a call that is refused.
    done = subprocess.run(
        program, preexec_fn=lambda: filtered(refusal), close_fds=False, capture_output=True,
        text=True, check=False,
    )
    assert done.returncode == 0, done.stderr
