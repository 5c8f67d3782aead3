"""Servers that fork their workers, gunicorn and uWSGI: whatever they do, each request that was
answered is in the log once, whole, and in order."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import missing
from vellum_log import Log

PREFORK = Path(__file__).parent / "prefork"
sys.path.insert(0, str(PREFORK))

from load import Found, Served, serve, server  # noqa: E402

WORKERS = 4
THREADS = 8
REQUESTS = 1500
#: So many where it is a matter of chance what is lost.
REQUESTS_COMPARED = 10_000
#: Several kills a second.
KILL_EVERY = 150
#: A new file after some forty lines.
ROTATE_BYTES = 8192


def gunicorn(address: Path, is_preloaded: bool) -> list[str]:
    """gunicorn, which imports the application before it forks if it is to be preloaded."""
    if importlib.util.find_spec("gunicorn") is None:
        missing("gunicorn is not installed: pip install gunicorn")
    command = [sys.executable, "-m", "gunicorn", "--pythonpath", str(PREFORK)]
    command += ["--bind", f"unix:{address}", "--workers", str(WORKERS), "--log-level", "critical"]
    return command + ["--preload"] * is_preloaded + ["app:application"]


def uwsgi(address: Path, is_preloaded: bool) -> list[str]:
    """uWSGI, which imports the application before it forks unless it is told to be lazy."""
    program = shutil.which("uwsgi", path=str(Path(sys.executable).parent)) or shutil.which("uwsgi")
    if program is None:
        missing("uwsgi is not installed: pip install uwsgi (needs a C compiler and python3-dev)")
    command = [program, "--master", "--processes", str(WORKERS), "--http-socket", str(address)]
    command += ["--virtualenv", sys.prefix, "--pythonpath", str(PREFORK), "--module", "app"]
    command += ["--need-app", "--die-on-term", "--disable-logging", "--logto", "/dev/null"]
    return command + ["--lazy-apps"] * (not is_preloaded)


SERVERS = {"gunicorn": gunicorn, "uwsgi": uwsgi}


def serve_and_kill(
    name: str,
    is_preloaded: bool,
    handler: dict[str, Any],
    tmp_path: Path,
    requests: int = REQUESTS,
) -> Served:
    """Serves requests, each logged by `handler`, while workers are killed."""
    address = tmp_path / "socket"
    logging = {
        "version": 1,
        "handlers": {"file": {"level": "INFO", **handler}},
        "root": {"level": "INFO", "handlers": ["file"]},
    }
    command = SERVERS[name](address, is_preloaded)
    with server(command, address, {"APP_LOGGING": json.dumps(logging)}) as pid:
        return serve(pid, address, requests, THREADS, KILL_EVERY)


@pytest.mark.parametrize("is_preloaded", [True, False], ids=["preloaded", "loaded in each worker"])
@pytest.mark.parametrize("name", SERVERS)
def test_each_answered_request_is_logged_once(tmp_path: Path, name: str, is_preloaded: bool) -> None:
    path = tmp_path / "app.log"
    path.mkdir()
    handler = {
        "class": "vellum_log.VellumHandler",
        "filename": str(path),
        "maxBytes": ROTATE_BYTES,
        "segment_capacity_bytes": ROTATE_BYTES,
    }
    served = serve_and_kill(name, is_preloaded, handler, tmp_path)
    assert served.kills >= 3, "workers have to be killed"
    found = Found.in_lines(lines_of(path))
    check(found, served)
    assert len(list(path.glob("*.log")) + list(path.glob("*.seg"))) > 10, "the log has to rotate"


def check(found: Found, served: Served) -> None:
    """Everything that was answered is there, and nothing that was not asked for."""
    lost = served.acknowledged - found.requests.keys()
    assert not lost, f"{len(lost)} of {len(served.acknowledged)} answered requests are lost"
    doubled = [request for request, count in found.requests.items() if count > 1 and request]
    assert not doubled, f"requests {doubled} are there more than once"
    assert found.requests.keys() <= set(range(REQUESTS + 1))
    for worker, numbers in found.workers.items():
        assert numbers == list(range(len(numbers))), f"lines of worker {worker}: {numbers}"
    # Where a worker was killed in the middle of a line, Vellum says so in its place.
    others = [line for line in found.foreign if not line.startswith("~")]
    assert not others, others
    assert len(found.foreign) <= served.kills


def lines_of(path: Path) -> list[str]:
    """The lines of all files; opened once before, so that what the killed left is made good."""
    with Log(str(path), create=False):
        pass
    files = sorted([*path.glob("*.log"), *path.glob("*.seg")])
    return b"".join(file.read_bytes() for file in files).decode().splitlines()


FORERUNNERS = {
    "RotatingFileHandler": "logging.handlers.RotatingFileHandler",
    "concurrent-log-handler": "concurrent_log_handler.ConcurrentRotatingFileHandler",
}


@pytest.mark.comparison
@pytest.mark.parametrize("handler_name", FORERUNNERS)
@pytest.mark.parametrize("name", SERVERS)
def test_what_other_handlers_lose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, handler_name: str
) -> None:
    """Asserts nothing: counts for the documentation. `pytest -m comparison`."""
    handler = {
        "class": FORERUNNERS[handler_name],
        "filename": str(tmp_path / "app.log"),
        "maxBytes": ROTATE_BYTES,
        "backupCount": 1000,
    }
    served = serve_and_kill(name, True, handler, tmp_path, REQUESTS_COMPARED)
    files = [path for path in tmp_path.glob("app.log*") if path.is_file()]
    lines = [line for path in files for line in path.read_text(errors="replace").splitlines()]
    found = Found.in_lines(lines)
    lost = served.acknowledged - found.requests.keys()
    with capsys.disabled():
        print(
            f"\n{name}, {WORKERS} workers, {served.kills} killed, {handler_name}: "
            f"{len(served.acknowledged)} requests answered, {len(lost)} of them not in the files, "
            f"{len(found.foreign)} torn lines"
        )
