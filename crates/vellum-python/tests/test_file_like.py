"""A text log as a file to write to: `print`, redirected output, structlog's loggers."""

from __future__ import annotations

import contextlib
import logging
import threading

import pytest

import vellum_log
from conftest import in_child, lines
from vellum_log import Log


def test_printed_lines_are_records(path: str) -> None:
    with Log(path, kind="text") as log:
        print("one", 2, file=log)
        print("three\nfour", file=log, flush=True)
        with contextlib.redirect_stdout(log):  # type: ignore[type-var]
            print("five")
        assert log.write("six\n") == 4 and log.write("ä\n".encode()) == 3
        assert log.write(bytearray(b"seven\n")) == 6 and log.write("") == 0
        assert lines(path) == ["one 2\n", "three\n", "four\n", "five\n", "six\n", "ä\n", "seven\n"]
        # Several lines of one call are one append.
        assert [record.lsn for record in log.read()][2] - log.begin < 20
    assert not log.isatty() and log.closed


def test_a_line_without_its_end_waits_for_it(path: str) -> None:
    with Log(path, kind="text") as log:
        assert log.write("begun") == 5
        log.flush()
        assert lines(path) == []
        log.append(b"between\n")
        print(", ended", file=log)
        assert lines(path) == ["between\n", "begun, ended\n"]
        log.write(b"left")
    assert lines(path)[2:] == ["left\n"], "closing ends it"
    with pytest.raises(ValueError, match="closed"):
        log.write("late")


def test_lines_of_threads_and_children_stay_whole(path: str) -> None:
    with Log(path, kind="text") as log:

        def speak(name: str) -> None:
            for number in range(200):
                print(name, number, file=log)

        log.write("of the parent")
        threads = [threading.Thread(target=speak, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        assert in_child(lambda: [speak("child"), log.close()]) == 0
        for thread in threads:
            thread.join()
        print(" alone", file=log)
    found = lines(path)
    assert sorted(found) == sorted(
        [f"{name} {number}\n" for name in ["a", "b", "c", "d", "child"] for number in range(200)]
        + ["of the parent alone\n"]
    )


def test_what_writes_to_files_writes_to_logs(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    class BytesLogger:
        """As structlog's: it keeps two methods of its file."""

        def __init__(self, file: Log) -> None:
            self._write, self._flush = file.write, file.flush

        def msg(self, message: bytes) -> None:
            self._write(message + b"\n")
            self._flush()

    with Log(path, kind="text") as log:
        BytesLogger(log).msg(b'{"event": "one"}')
        handler = logging.StreamHandler(log)
        handler.emit(logging.makeLogRecord({"msg": "two %d", "args": (2,)}))
        log.write("\udc80\n")
    assert lines(path) == ['{"event": "one"}\n', "two 2\n", "\\udc80\n"]
    assert capsys.readouterr().err == ""


def test_what_is_no_text_or_no_text_log_is_refused(path: str) -> None:
    with Log(path, kind="text") as log:
        for wrong in (1, None, ["a"]):
            with pytest.raises(TypeError):
                log.write(wrong)  # type: ignore[arg-type]
    with Log(path + ".wal", kind="wal") as wal:
        with pytest.raises(vellum_log.Unsupported, match="append"):
            print("a line", file=wal)
        wal.flush()
