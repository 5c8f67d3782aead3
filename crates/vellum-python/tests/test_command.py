"""The command `vellum` that the wheel brings."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from vellum_log import Log, __main__ as command

SCRIPT = (str(Path(sys.executable).parent / "vellum"),)
MODULE = (sys.executable, "-m", "vellum_log")


@pytest.mark.parametrize("vellum", [SCRIPT, MODULE])
def test_the_command_is_installed_with_the_package(path: str, vellum: tuple[str, ...]) -> None:
    def run(*words: str, given: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run([*vellum, *words], input=given, capture_output=True, text=True)

    assert run("append", "--layout", "text", path, given="one\ntwo\n").returncode == 0
    with Log(path, create=False) as log:
        log.append(b"three\n")
    assert run("cat", path).stdout == "one\ntwo\nthree\n"
    missing = run("cat", path + ".missing")
    assert missing.returncode == 1 and missing.stderr.startswith("vellum: ")
    assert "Usage: vellum " in run("--help").stdout


def test_it_takes_the_place_of_python(path: str) -> None:
    with subprocess.Popen([*MODULE, "append", path], stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"a record\n")
        process.stdin.close()
        assert process.wait() == 0
    # A signal that Python ignores is not ignored in the command.
    show = 'import sys, vellum_log.__main__ as m; m._COMMAND = m.Path("/bin/sh"); m.main()'
    shell = [sys.executable, "-c", show, "-c", "kill -PIPE $$"]
    assert subprocess.run(shell).returncode == -signal.SIGPIPE


def test_a_package_without_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "_COMMAND", Path("/nowhere/vellum"))
    with pytest.raises(SystemExit, match="built without the command"):
        command.main()
