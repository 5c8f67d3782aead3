"""Requests from many threads to a server that forks its workers, which are killed meanwhile."""

from __future__ import annotations

import http.client
import os
import random
import re
import signal
import socket
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

#: How long a server may take to start, and to serve all requests.
PATIENCE_SECONDS = 120.0
#: … and to end. uWSGI now and then does not pass the signal on to a worker that it has just begun.
ENDING_SECONDS = 10.0

_WHOLE = re.compile(r"worker (\d+) line (\d+) request (\d+) (x*)\.")


@dataclass
class Served:
    """What the clients know when the server has ended."""

    #: The requests that were answered; each number was asked for once.
    acknowledged: set[int]
    kills: int


@dataclass
class Found:
    """What the log has."""

    #: How often each request is there.
    requests: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    #: The numbers of the lines of each worker, in the order of the log.
    workers: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: Lines that no worker logged.
    foreign: list[str] = field(default_factory=list)

    @classmethod
    def in_lines(cls, lines: list[str]) -> Found:
        """Sorts the lines of a log."""
        found = cls()
        for line in lines:
            match = _WHOLE.fullmatch(line)
            request = int(match[3]) if match else 0
            if match is None or len(match[4]) != request * 37 % 300:
                found.foreign.append(line)
                continue
            found.requests[request] += 1
            found.workers[int(match[1])].append(int(match[2]))
        return found


@contextmanager
def server(command: list[str], address: Path, environment: dict[str, str]) -> Iterator[int]:
    """Runs `command`, which listens at the Unix socket `address`; its process id, once it answers."""
    with subprocess.Popen(command, env={**os.environ, **environment}) as process:
        try:
            _await_answer(process, address)
            yield process.pid
        finally:
            _end(process)


def serve(pid: int, address: Path, requests: int, threads: int, kill_every: int) -> Served:
    """Sends requests from many threads, and kills a worker once in each so many answers."""
    load = _Load(pid, address, requests, kill_every)
    clients = [threading.Thread(target=load.work) for _ in range(threads)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert not load.is_late(), f"the server answered {len(load.acknowledged)} requests in all its time"
    return Served(load.acknowledged, load.kills)


class _Load:
    """What the client threads share."""

    def __init__(self, pid: int, address: Path, requests: int, kill_every: int) -> None:
        self.pid = pid
        self.address = address
        self.numbers = iter(range(1, requests + 1))
        self.kill_every = kill_every
        self.acknowledged: set[int] = set()
        self.kills = 0
        self.lock = threading.Lock()
        self.deadline = time.monotonic() + PATIENCE_SECONDS

    def is_late(self) -> bool:
        return time.monotonic() > self.deadline

    def work(self) -> None:
        """One client: asks for one number after the other. No answer is an answer too."""
        while not self.is_late():
            with self.lock:
                number = next(self.numbers, None)
            if number is None:
                return
            if is_answered(self.address, number):
                self.acknowledge(number)

    def acknowledge(self, number: int) -> None:
        with self.lock:
            self.acknowledged.add(number)
            # In the middle of each, so that none is killed when all is over.
            if len(self.acknowledged) % self.kill_every == self.kill_every // 2:
                self.kills += _kill_one(children(self.pid))


def is_answered(address: Path, number: int) -> bool:
    """Is this request answered as it should be?"""
    connection = _Connection(address)
    try:
        connection.request("GET", f"/{number}")
        response = connection.getresponse()
        return response.status == 200 and response.read() == b"logged\n"
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


class _Connection(http.client.HTTPConnection):
    """HTTP through a Unix socket."""

    def __init__(self, address: Path) -> None:
        super().__init__("localhost", timeout=30.0)
        self.address = address

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self.address))


def children(pid: int) -> list[int]:
    """The processes whose parent is `pid`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in brackets, may have blanks in it.
            parent = path.read_text().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            found.append(int(path.parent.name))
    return found


def _kill_one(pids: list[int]) -> int:
    """Kills one of these processes, as the system does that runs out of memory. Was there any?"""
    if not pids:
        return 0
    try:
        os.kill(random.choice(pids), signal.SIGKILL)
    except ProcessLookupError:
        return 0
    return 1


def _await_answer(process: subprocess.Popen[bytes], address: Path) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_answered(address, 0):
        assert process.poll() is None, f"the server ended with exit code {process.returncode}"
        assert time.monotonic() < deadline, "the server did not answer"
        time.sleep(0.05)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Asks the server to end, and its workers with it; else ends them."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        workers = children(process.pid)
        process.kill()
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
