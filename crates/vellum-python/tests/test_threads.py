"""Threads that really run at once, where Python has no GIL; where it has one they take turns."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from vellum_log import Log, VellumHandler

THREADS = 4
EACH = 500


def at_once(*acts: Callable[[], None]) -> None:
    """Runs each in a thread of its own, and raises what the first of them raised."""
    raised: list[BaseException] = []
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], None]) -> None:
        try:
            start.wait()
            act()
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def test_the_module_leaves_the_gil_off() -> None:
    if not hasattr(sys, "_is_gil_enabled"):
        pytest.skip("this Python is older than 3.13")
    assert sys._is_gil_enabled() == ("free-threading" not in sys.version)


def test_threads_share_a_handler_whose_formatter_changes(
    path: str, logger: logging.Logger
) -> None:
    handler = VellumHandler(path)
    logger.addHandler(handler)
    formatters = [
        logging.Formatter(f"%(asctime)s {kind} %(message)s %(threadName)s") for kind in "abc"
    ]

    def log(name: int) -> None:
        for number in range(EACH):
            if name == 0:
                handler.setFormatter(formatters[number % len(formatters)])
            logger.info("%d/%d", name, number)

    handler.setFormatter(formatters[0])
    at_once(*(partial(log, name) for name in range(THREADS)))
    with Log(path) as log_:
        lines = [bytes(record).decode() for record in log_.read()]
    shown = r"[\d-]{10} [\d:]{8},\d{3} [abc] (\d)/(\d+) Thread-\d+ \(run\)\n"
    found = [re.fullmatch(shown, line) for line in lines]
    assert all(found), next(line for line, match in zip(lines, found) if not match)
    logged = [(int(match[1]), int(match[2])) for match in found if match]
    assert sorted(logged) == [(name, n) for name in range(THREADS) for n in range(EACH)]
    # Each thread's lines are in its own order.
    for name in range(THREADS):
        assert [n for of, n in logged if of == name] == list(range(EACH))


def test_a_handler_is_closed_and_opened_again_while_threads_log(
    path: str, logger: logging.Logger
) -> None:
    handler = VellumHandler(path)
    logger.addHandler(handler)
    refused: list[object] = []
    handler.handleError = refused.append
    done = threading.Event()

    def close() -> None:
        while not done.is_set():
            handler.close()

    def log(name: int) -> None:
        for number in range(EACH):
            logger.info("%d/%d", name, number)

    closing = threading.Thread(target=close)
    closing.start()
    try:
        at_once(*(partial(log, name) for name in range(THREADS)))
    finally:
        done.set()
        closing.join()
    with Log(path) as log_:
        lines = {bytes(record) for record in log_.read()}
    # A record that comes when the handler is being closed is in the log, or its thread was told.
    assert len(lines) + len(refused) == THREADS * EACH


def test_a_log_is_closed_while_threads_use_it(path: str) -> None:
    log = Log(path, kind="text")
    appended: list[bytes] = []

    def append(name: int) -> None:
        with suppress(ValueError):
            for number in range(100 * EACH):
                line = b"%d/%d\n" % (name, number)
                log.append(line)
                appended.append(line)
                if len(appended) > EACH:
                    log.close()

    at_once(*(partial(append, name) for name in range(THREADS)))
    with Log(path) as log:
        # The log has the records whose threads got a position, and no other.
        assert sorted(map(bytes, log.read())) == sorted(appended)


def test_a_fork_finds_no_lock_held_while_threads_use_everything(
    path: str, logger: logging.Logger
) -> None:
    """Also while garbage is collected, for which a Python without GIL stops all threads."""
    handler = VellumHandler(path)
    logger.addHandler(handler)
    done = threading.Event()

    def log(name: int) -> None:
        while not done.is_set():
            # A formatter that is new each time: the one before it goes.
            handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
            logger.info("thread %d", name)

    def read() -> None:
        with Log(path) as reading:
            while not done.is_set():
                for _ in reading.read():
                    pass

    def fork() -> None:
        try:
            for number in range(40):
                child = os.fork()
                if child == 0:
                    signal.alarm(60)
                    logger.info("child %d", number)
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
                gc.collect()
        finally:
            done.set()

    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    at_once(lambda: log(1), lambda: log(2), read, fork)
    with Log(path) as log_:
        text = b"".join(map(bytes, log_.read())).decode()
    assert len(re.findall(r"^.* child \d+$", text, re.MULTILINE)) == 40
