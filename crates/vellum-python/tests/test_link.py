"""A log at the path of a file."""

from __future__ import annotations

import logging
import os
import pickle
from pathlib import Path

import pytest

from vellum_log import Log, VellumHandler


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("a", logging.INFO, "", 0, text, None, None)


def test_the_handler_writes_a_file_that_every_tool_reads(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    handler = VellumHandler(path)
    handler.emit(record("one"))
    assert path.read_text() == "one\n"
    assert os.readlink(path) == "app.log.d/current"
    handler.log.rotate()
    handler.emit(record("two"))
    assert path.read_text() == "two\n"
    handler.close()
    with Log(path, read_only=True) as log:
        assert [found.payload for found in log.read()] == [b"one\n", b"two\n"]


def test_a_log_in_a_directory_stays_one(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    VellumHandler(path, file_link=False).close()
    handler = VellumHandler(path)
    handler.emit(record("one"))
    handler.close()
    assert (path / "current").read_text() == "one\n"


def test_an_old_file_is_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("old\n")
    with pytest.raises(Exception, match="is a file that is no log; rename"):
        VellumHandler(path)
    assert path.read_text() == "old\n"


def test_a_link_that_is_gone_is_made_again_by_a_copy_of_the_handler(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    handler = VellumHandler(path)
    handler.emit(record("one"))
    copy = pickle.loads(pickle.dumps(handler))
    handler.close()
    path.unlink()
    copy.emit(record("two"))
    copy.close()
    assert path.read_text() == "one\ntwo\n"
