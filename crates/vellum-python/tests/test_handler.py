"""`VellumHandler` as a `logging.Handler`: configuration, options, errors, closing."""

from __future__ import annotations

import grp
import io
import logging
import logging.config
import logging.handlers
import os
import pickle
import pwd
import queue
import threading
from pathlib import Path
from typing import Literal

import pytest

import vellum_log
from conftest import handler_to, in_child, lines, missing
from vellum_log import Log, VellumHandler


def test_a_record_is_a_line(path: str, logger: logging.Logger) -> None:
    logger.addHandler(handler_to(path))
    logger.info("%d items", 3)
    logger.warning("two\nlines")
    assert lines(path) == ["INFO 3 items\n", "WARNING two\n", "lines\n"]


def test_the_file_is_plain_text_without_anything_behind_it(
    path: str, logger: logging.Logger
) -> None:
    handler = handler_to(path)
    logger.addHandler(handler)
    logger.info("hello")
    segment = Path(handler.log.stat()["segments"][0]["path"])
    assert segment.read_bytes() == b"INFO hello\n"


def test_dict_config(path: str) -> None:
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {"short": {"format": "%(levelname)s:%(message)s"}},
            "handlers": {
                "file": {
                    "class": "vellum_log.VellumHandler",
                    "filename": path,
                    "maxBytes": 1_000_000,
                    "backupCount": 5,
                    "encoding": "utf-8",
                    "level": "WARNING",
                    "formatter": "short",
                    "when": "midnight",
                    "retain_age": 30 * 86400,
                    "commit_on": "ERROR",
                }
            },
            "loggers": {"configured": {"handlers": ["file"], "level": "DEBUG"}},
        }
    )
    logger = logging.getLogger("configured")
    logger.info("below the handler's level")
    logger.warning("shown")
    (handler,) = logger.handlers
    assert handler.name == "file"
    logger.removeHandler(handler)
    handler.close()
    assert lines(path) == ["WARNING:shown\n"]


def test_file_config(path: str) -> None:
    config = f"""
[loggers]
keys=root,fromfile
[handlers]
keys=file
[formatters]
keys=short
[logger_root]
handlers=
[logger_fromfile]
handlers=file
qualname=fromfile
level=DEBUG
[handler_file]
class=vellum_log.VellumHandler
args=({path!r}, 'a', 1000000, 5, 'utf-8')
kwargs={{'when': 'H'}}
formatter=short
[formatter_short]
format=%(message)s
"""
    logging.config.fileConfig(io.StringIO(config), disable_existing_loggers=False)
    logger = logging.getLogger("fromfile")
    logger.info("from a file")
    (handler,) = logger.handlers
    logger.removeHandler(handler)
    handler.close()
    assert lines(path) == ["from a file\n"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"mode": "w"}, "mode is 'w'"),
        ({"when": "fortnight"}, "W0"),
        ({"when": "W7"}, "W0"),
        ({"when": "D", "interval": 0}, "interval is 0"),
        ({"commit_on": "LOUD"}, "LOUD"),
        ({"level": "LOUD"}, "LOUD"),
        ({"maxBytes": -1}, "maxBytes is -1"),
        ({"maxBytes": -1, "delay": True}, "maxBytes is -1"),
        ({"backupCount": "many"}, "backupCount is 'many'"),
        ({"on_full": "ignore"}, "block"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(path: str, arguments: dict, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        VellumHandler(path, **arguments)
    assert not os.path.exists(path)


def test_unknown_encodings_are_refused(path: str) -> None:
    for arguments in ({"encoding": "no-such"}, {"errors": "no-such"}):
        with pytest.raises(LookupError):
            VellumHandler(path, **arguments)  # type: ignore[arg-type]


def test_a_plain_file_is_not_a_log(path: str) -> None:
    Path(path).write_text("what was there\n")
    with pytest.raises(vellum_log.Incompatible, match="rename the file"):
        VellumHandler(path)
    assert Path(path).read_text() == "what was there\n"


def test_a_directory_that_is_missing_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        VellumHandler(tmp_path / "missing" / "app.log")
    assert not (tmp_path / "missing").exists()


def test_a_log_that_is_there_is_taken_as_it_is(path: str, logger: logging.Logger) -> None:
    Log(path, kind="mapped-text", segment_capacity_bytes=8192).close()
    logger.addHandler(handler_to(path, segment_capacity_bytes=1 << 20))
    logger.info("x")
    with Log(path) as log:
        assert log.stat()["fill"] == "mapped"


def test_delay_opens_at_the_first_record(path: str, logger: logging.Logger) -> None:
    logger.addHandler(handler_to(path, delay=True))
    assert not os.path.exists(path)
    logger.info("x")
    assert lines(path) == ["INFO x\n"]


def test_a_relative_name_stays_where_it_was(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(path))
    handler = VellumHandler("app.log", delay=True)
    monkeypatch.chdir("/")
    assert handler.baseFilename == path == handler.log.path
    assert repr(handler) == f"<VellumHandler {path} (NOTSET)>"
    handler.close()


def test_a_closed_handler_opens_again(path: str, logger: logging.Logger) -> None:
    handler = handler_to(path)
    logger.addHandler(handler)
    logger.info("before")
    log = handler.log
    handler.close()
    handler.close()
    assert log.closed
    logger.info("after")
    assert lines(path) == ["INFO before\n", "INFO after\n"]


def test_a_record_on_its_way_arrives_when_the_handler_is_closed(
    path: str, logger: logging.Logger
) -> None:
    handler = handler_to(path)
    logger.addHandler(handler)

    class Closing:
        def __str__(self) -> str:
            handler.close()
            return "on its way"

    logger.info(Closing())
    assert lines(path) == ["INFO on its way\n"]


def test_records_from_a_level_on_are_durable(path: str, logger: logging.Logger) -> None:
    handler = handler_to(path, commit_on="ERROR")
    logger.addHandler(handler)
    logger.warning("not yet")
    assert handler.log.durable < handler.log.published
    logger.error("now")
    assert handler.log.durable == handler.log.published
    handler.handle(logging.makeLogRecord({"msg": "no level"}))
    assert handler.log.durable < handler.log.published


def test_filters_decide(path: str, logger: logging.Logger) -> None:
    handler = handler_to(path)
    handler.addFilter(lambda record: "secret" not in record.getMessage())
    logger.addHandler(handler)
    logger.info("a secret")
    logger.info("not one")
    assert lines(path) == ["INFO not one\n"]


def test_handle_returns_what_the_standard_one_returns(path: str) -> None:
    record = logging.makeLogRecord({"msg": "x"})
    ours, theirs = handler_to(path), logging.NullHandler()
    theirs = logging.StreamHandler(io.StringIO())
    assert ours.handle(record) == theirs.handle(record)
    for handler in (ours, theirs):
        handler.addFilter(lambda record: False)
    assert ours.handle(record) == theirs.handle(record)
    ours.close()


def test_subclasses_are_heard(path: str, logger: logging.Logger) -> None:
    class Counting(VellumHandler):
        count = 0

        def emit(self, record: logging.LogRecord) -> None:
            self.count += 1
            super().emit(record)

    class Discreet(Counting):
        def filter(self, record: logging.LogRecord) -> bool:  # type: ignore[override]
            return "secret" not in record.getMessage() and bool(super().filter(record))

    class Loud(Discreet):
        def format(self, record: logging.LogRecord) -> str:
            return super().format(record).upper()

    handler = Loud(path)
    logger.addHandler(handler)
    logger.info("hello")
    logger.info("a secret")
    assert (handler.count, lines(path)) == (1, ["HELLO\n"])


def test_methods_put_on_a_handler_are_heard(
    path: str, logger: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = handler_to(path)
    logger.addHandler(handler)
    seen: list[str] = []
    for method in ("handle", "emit", "handleError"):
        handler.__dict__[method] = lambda record, method=method: seen.append(method)
        logger.info("%d", "not a number")
        del handler.__dict__[method]
    monkeypatch.setattr(VellumHandler, "emit", lambda self, record: seen.append("of the class"))
    logger.info("x")
    monkeypatch.undo()
    logger.info("back")
    assert seen == ["handle", "emit", "handleError", "of the class"]
    assert lines(path) == ["INFO back\n"]


def test_errors_go_the_usual_way(
    path: str, logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    logger.addHandler(handler_to(path))
    logger.info("%d", "not a number")
    logger.info("goes on")
    shown = capsys.readouterr().err
    assert "--- Logging error ---" in shown and "TypeError: %d format" in shown
    assert "Arguments: ('not a number',)" in shown
    assert lines(path) == ["INFO goes on\n"]


def test_what_ends_the_program_is_not_swallowed(path: str, logger: logging.Logger) -> None:
    class Interrupting:
        def __str__(self) -> str:
            raise KeyboardInterrupt

    class Endless:
        def __str__(self) -> str:
            return str(self)

    logger.addHandler(handler_to(path))
    with pytest.raises(KeyboardInterrupt):
        logger.info(Interrupting())
    with pytest.raises(RecursionError):
        logger.info(Endless())


def test_there_is_no_lock_and_no_thread(path: str, logger: logging.Logger) -> None:
    before = set(os.listdir("/proc/self/task"))
    handler = handler_to(path)
    logger.addHandler(handler)
    logger.info("x")
    assert handler.lock is None
    assert set(os.listdir("/proc/self/task")) <= before
    assert handler not in getattr(logging, "_at_fork_reinit_lock_weakset", ())
    handler.acquire()
    handler.release()
    handler.flush()


def test_a_thread_that_hangs_in_formatting_stops_nobody(
    path: str, logger: logging.Logger
) -> None:
    """With a lock around `emit` the second record could not be written."""
    logger.addHandler(handler_to(path))
    entered, may_go_on = threading.Event(), threading.Event()

    class Slow:
        def __str__(self) -> str:
            entered.set()
            may_go_on.wait()
            return "slow"

    thread = threading.Thread(target=logger.info, args=(Slow(),))
    thread.start()
    entered.wait()
    logger.info("fast")
    may_go_on.set()
    thread.join()
    assert lines(path) == ["INFO fast\n", "INFO slow\n"]


def test_a_pickled_handler_goes_on(path: str) -> None:
    handler = handler_to(path, maxBytes=12345, encoding="latin-1", commit_on=30, level="INFO")
    handler.set_name("named")
    handler.addFilter(logging.Filter(""))
    copy = pickle.loads(pickle.dumps(handler))
    assert (copy.name, copy.level, copy.encoding) == ("named", logging.INFO, "iso8859-1")
    assert copy._options == {"on_full": None, "file_link": True}, "the copy must not set the policy again"
    copy.handle(logging.makeLogRecord({"msg": "é", "levelname": "X"}))
    with Log(path) as log:
        assert [record.payload for record in log.read()] == [b"X \xe9\n"]
    assert logging._handlers.get("named") is not copy  # type: ignore[attr-defined]


def test_behind_a_queue(path: str, logger: logging.Logger) -> None:
    records: queue.SimpleQueue[logging.LogRecord] = queue.SimpleQueue()
    listener = logging.handlers.QueueListener(records, handler_to(path))
    logger.addHandler(logging.handlers.QueueHandler(records))  # type: ignore[arg-type]
    listener.start()
    logger.info("queued")
    listener.stop()
    assert lines(path) == ["INFO queued\n"]


def test_as_a_target_of_memory_handler(path: str, logger: logging.Logger) -> None:
    logger.addHandler(logging.handlers.MemoryHandler(10, logging.ERROR, handler_to(path)))
    logger.info("held")
    assert lines(path) == [] if os.path.exists(path) else True
    logger.error("flushes")
    assert lines(path) == ["INFO held\n", "ERROR flushes\n"]


def test_do_rollover_starts_the_next_file(path: str) -> None:
    handler = handler_to(path)
    for text in ("one", "two"):
        handler.emit(logging.makeLogRecord({"msg": text, "levelname": "INFO"}))
        handler.doRollover()
    handler.doRollover()
    handler.close()
    files = sorted(Path(f"{path}.d").glob("*.log"))
    assert [file.read_text() for file in files] == ["INFO one\n", "INFO two\n"]
    assert lines(path) == ["INFO one\n", "INFO two\n"]


def of_all_files(path: str) -> set[tuple[int, int, int]]:
    found = [os.lstat(os.path.join(path, name)) for name in os.listdir(path) if name != "current"]
    return {(stat.st_uid, stat.st_gid, stat.st_mode & 0o666) for stat in found}


@pytest.mark.parametrize("fill", [None, "mapped"])
def test_owner_and_chmod_are_those_of_a_new_log(path: str, fill: Literal["mapped"] | None) -> None:
    if os.geteuid() != 0:
        missing("only root gives files away")
    before = os.umask(0o077)
    try:
        handler = VellumHandler(path, owner=("nobody", "nogroup"), chmod=0o664, fill=fill)
        handler.emit(logging.makeLogRecord({"msg": "one"}))
        handler.doRollover()
        handler.emit(logging.makeLogRecord({"msg": "two"}))
        assert os.umask(0o077) == 0o077, "the umask is as it was"
    finally:
        os.umask(before)
    directory = f"{path}.d"
    nobody = (pwd.getpwnam("nobody").pw_uid, grp.getgrnam("nogroup").gr_gid)
    assert {(uid, gid) for uid, gid, _ in of_all_files(directory)} == {nobody}
    # Only a user that may write may open the file that locks are taken on.
    assert {mode for _, _, mode in of_all_files(directory)} <= {0o664, 0o660}
    made = os.stat(directory)
    assert ((made.st_uid, made.st_gid), made.st_mode & 0o777) == (nobody, 0o775)

    def as_nobody() -> None:
        os.setgroups([])
        os.setgid(nobody[1])
        os.setuid(nobody[0])
        for number in range(3):
            handler.emit(logging.makeLogRecord({"msg": f"by nobody {number}"}))
            handler.doRollover()

    os.chmod(os.path.dirname(path), 0o755)
    assert in_child(as_nobody) == 0
    handler.close()
    assert len(lines(path)) == 5
    # A log that is there stays as it is.
    VellumHandler(path, owner=(0, 0), chmod=0o600).close()
    assert {(uid, gid) for uid, gid, _ in of_all_files(directory)} == {nobody}


def test_an_owner_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(LookupError):
        VellumHandler(path, owner=("no-such-user", None))
    assert not os.path.exists(path)
    for arguments in ({"owner": "nobody"}, {"chmod": 0o10000}, {"chmod": "rw"}):
        with pytest.raises(ValueError):
            VellumHandler(path, **arguments)  # type: ignore[arg-type]
