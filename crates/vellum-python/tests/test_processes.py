"""Many processes: every way in which Python makes them, and every way in which they end."""

from __future__ import annotations

import concurrent.futures
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import check_every_line_once, handler_to, in_child, lines
from vellum_log import Log, VellumHandler

METHODS = ["fork", "spawn", "forkserver"]

# : So that the log continues in a new file again and again.
MAX_BYTES = 5000


def work(handler: VellumHandler, name: str, count: int) -> None:
    """Logs `count` lines in this process. A function of the module, so that `spawn` finds it."""
    logger = logging.Logger(name)
    logger.addHandler(handler)
    for number in range(count):
        logger.info("%s %d %s", name, number, "x" * (number % 97))


def plain_handler(path: str) -> VellumHandler:
    handler = VellumHandler(path, maxBytes=MAX_BYTES)
    handler.setFormatter(logging.Formatter("%(message)s"))
    return handler


@pytest.mark.parametrize("method", METHODS)
def test_processes_given_a_handler(path: str, method: str) -> None:
    context = multiprocessing.get_context(method)
    handler = plain_handler(path)
    names = [f"writer-{number}" for number in range(4)]
    processes = [context.Process(target=work, args=(handler, name, 300)) for name in names]
    for process in processes:
        process.start()
    work(handler, "parent", 300)
    for process in processes:
        process.join()
        assert process.exitcode == 0
    check_every_line_once(lines(path), dict.fromkeys([*names, "parent"], 300))


def work_in_pool(task: tuple[VellumHandler, str, int]) -> int:
    work(*task)
    return os.getpid()


@pytest.mark.parametrize("method", METHODS)
def test_a_pool_of_processes(path: str, method: str) -> None:
    context = multiprocessing.get_context(method)
    handler = plain_handler(path)
    names = [f"task-{number}" for number in range(12)]
    with concurrent.futures.ProcessPoolExecutor(3, mp_context=context) as pool:
        pids = set(pool.map(work_in_pool, [(handler, name, 100) for name in names]))
    assert os.getpid() not in pids
    check_every_line_once(lines(path), dict.fromkeys(names, 100))


def append_in_pool(task: tuple[Log, bytes]) -> int:
    log, payload = task
    return log.append(payload)


@pytest.mark.parametrize("method", METHODS)
def test_a_log_goes_to_a_pool(path: str, method: str) -> None:
    context = multiprocessing.get_context(method)
    with Log(path) as log:
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            payloads = [b"%d" % number for number in range(50)]
            positions = list(pool.map(append_in_pool, [(log, payload) for payload in payloads]))
        found = {record.lsn: record.payload for record in log.read()}
        assert found == dict(zip(positions, payloads, strict=True))


def test_forks_in_the_middle_of_logging_from_threads(path: str) -> None:
    """A lock that a thread held at the fork would hang the child, which has no such thread."""
    handler = plain_handler(path)
    ends = threading.Event()
    counts: dict[str, int] = {}

    def log_on(name: str) -> None:
        logger = logging.Logger(name)
        logger.addHandler(handler)
        number = 0
        while not ends.is_set():
            logger.info("%s %d %s", name, number, "x" * (number % 97))
            number += 1
            counts[name] = number

    names = [f"thread-{number}" for number in range(3)]
    threads = [threading.Thread(target=log_on, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    pids = []
    for number in range(30):
        pid = os.fork()
        if pid == 0:
            signal.alarm(60)
            try:
                work(handler, f"child-{number}", 20)
            finally:
                os._exit(0)
        pids.append(pid)
    for number, pid in enumerate(pids):
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        counts[f"child-{number}"] = 20
    ends.set()
    for thread in threads:
        thread.join()
    check_every_line_once(lines(path), counts)


def test_children_of_children(path: str) -> None:
    handler = plain_handler(path)
    work(handler, "a", 5)

    def child() -> None:
        work(handler, "b", 5)
        assert in_child(lambda: work(handler, "c", 5)) == 0

    assert in_child(child) == 0
    assert in_child(handler.close) == 0
    work(handler, "d", 5)
    check_every_line_once(lines(path), dict.fromkeys("abcd", 5))


def test_a_child_may_shut_logging_down(path: str) -> None:
    """As every child of `multiprocessing` and every `sys.exit` does."""
    handler = plain_handler(path)
    work(handler, "a", 5)
    assert in_child(logging.shutdown) == 0
    check_every_line_once(lines(path), {"a": 5})


def test_a_killed_interpreter_loses_nothing(
    path: str, run_python: Callable[..., subprocess.Popen[str]]
) -> None:
    program = """
        import logging, os, signal, sys
        from vellum_log import VellumHandler
        logging.basicConfig(handlers=[VellumHandler(sys.argv[1])], format="%(message)s", level=0)
        logging.info("the last words")
        os.kill(os.getpid(), signal.SIGKILL)
        """
    process = run_python(program, path)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    assert lines(path) == ["the last words\n"]


#: Logs until it is killed, and says after each record how far it has come.
WRITER = """
    import logging, os, sys
    from vellum_log import VellumHandler
    path, name, told = sys.argv[1:]
    handler = VellumHandler(path, maxBytes=5000, segment_capacity_bytes=8192, fill=FILL)
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.Logger(name)
    logger.addHandler(handler)
    told = os.open(told, os.O_WRONLY | os.O_CREAT)
    print("ready", flush=True)
    number = 0
    while True:
        logger.info("%s %d %s", name, number, "x" * (number % 97))
        number += 1
        os.pwrite(told, b"%010d" % number, 0)
    """


@pytest.mark.parametrize("fill", ["pwrite", "mapped"])
def test_writers_killed_under_load(
    path: str, tmp_path: Path, run_python: Callable[..., subprocess.Popen[str]], fill: str
) -> None:
    """Whoever is killed has lost nothing that was logged, and nobody else notices."""
    chance = random.Random(5)
    program = WRITER.replace("FILL", repr(fill))
    names = [f"writer-{number}" for number in range(8)]
    running: dict[str, subprocess.Popen[str]] = {}
    for name in names:
        running[name] = run_python(program, path, name, tmp_path / name)
        output = running[name].stdout
        assert output is not None and output.readline() == "ready\n"
        if len(running) > 3:
            kill_one(running, tmp_path, chance)
    while running:
        kill_one(running, tmp_path, chance)
    counts = {name: int((tmp_path / name).read_text()) for name in names}
    found = [line for line in lines(path) if not line.startswith("~")]
    check_every_line_once(found, counts, may_lack=1)
    with Log(path) as log:
        report = log.verify()
        assert report["damage"] == [] and log.stat()["tail"] == log.published
        assert len(log.stat()["segments"]) > 3
        log.append(b"goes on\n")


def kill_one(
    running: dict[str, subprocess.Popen[str]], told: Path, chance: random.Random
) -> None:
    """Kills one once all have logged some more."""
    before = {name: progress(told / name) for name in running}
    for name in running:
        while progress(told / name) < before[name] + chance.randrange(50, 500):
            assert running[name].poll() is None, running[name].communicate()
    process = running.pop(chance.choice(sorted(running)))
    process.kill()
    process.communicate()


def progress(path: Path) -> int:
    try:
        return int(path.read_text() or 0)
    except FileNotFoundError:
        return 0


@pytest.mark.parametrize("method", METHODS)
def test_multiprocessing_by_a_configuration(path: str, method: str) -> None:
    """Each process configures logging for itself, as `spawn` makes programs do."""
    context = multiprocessing.get_context(method)
    processes = [
        context.Process(target=configure_and_work, args=(path, f"own-{number}"))
        for number in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    check_every_line_once(lines(path), {f"own-{number}": 100 for number in range(3)})


def configure_and_work(path: str, name: str) -> None:
    work(plain_handler(path), name, 100)


def test_handlers_of_the_same_log_in_one_process(path: str) -> None:
    first, second = handler_to(path), handler_to(path)
    first.handle(logging.makeLogRecord({"msg": "one"}))
    second.handle(logging.makeLogRecord({"msg": "two"}))
    first.close()
    second.handle(logging.makeLogRecord({"msg": "three"}))
    assert [line.split()[-1] for line in lines(path)] == ["one", "two", "three"]


def log_alone(path: str) -> None:
    # Of a logger that lives as long as its process.
    logger = logging.getLogger("worker")
    logger.addHandler(VellumHandler(path, fill="mapped"))
    logger.error("one")


@pytest.mark.parametrize("method", METHODS)
def test_a_worker_that_ends_leaves_a_file_that_is_its_text(directory: str, method: str) -> None:
    worker = multiprocessing.get_context(method).Process(target=log_alone, args=(directory,))
    worker.start()
    worker.join()
    assert worker.exitcode == 0
    assert Path(directory, "current").read_bytes() == b"one\n"


@pytest.mark.parametrize(
    "keep",
    [
        'log = Log(path, kind="mapped-text"); log.append(b"one\\n")',
        'h = VellumHandler(path, fill="mapped"); h.handle(logging.makeLogRecord({"msg": "one"}))',
    ],
)
def test_a_program_that_ends_leaves_a_file_that_is_its_text(
    directory: str, run_python: Callable[..., subprocess.Popen[str]], keep: str
) -> None:
    program = f"import logging, sys; from vellum_log import *; path = sys.argv[1]; {keep}; sys.exit(3)"
    assert run_python(program, directory).wait() == 3
    assert Path(directory, "current").read_bytes() == b"one\n"
