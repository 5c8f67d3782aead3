"""`VellumHandler`: a `logging.Handler` that any number of processes may share."""

from __future__ import annotations

import codecs
import contextlib
import datetime
import logging
import operator
import os
import sys
import warnings
import weakref
from typing import Any, Callable, Literal, Union

from vellum_log._vellum_log import LineWriter, Log
from vellum_log.errors import Error, Incompatible, PermissionDenied, Removed
from vellum_log.rights import Rights
from vellum_log.schedule import Schedule

#: `retain_files` for "keep all of them".
_ALL = 2**64 - 1

#: After whatever else is to be done when a process of `multiprocessing` ends, and may be logged.
_LAST = -1000

_Write = Callable[[logging.LogRecord, Union[logging.Formatter, None]], None]


class VellumHandler(logging.Handler):
    """Writes records as lines to the text log at `filename`.

    Any number of threads and processes may have handlers on the same log, made before or after
    `fork`, by `spawn`, or in programs that know nothing of each other. Each record is one append: its
    lines stay together, none is lost, and it survives the death of the process when the logging
    call returns. `filename` is a link to the file being written, for `tail -F`, `less` and `grep`;
    all files are in `filename.d`. A log that is there as a directory stays one.

    Arguments have the names of `RotatingFileHandler` and `TimedRotatingFileHandler`, and may be
    used together. `None` leaves the log as it is; what is given replaces the log's policy for
    every process:

    - `maxBytes`: length at which the log goes on in a new file; 0 is no limit. A record that is
      longer has a file of its own.
    - `backupCount`: closed files that are kept; 0 is all of them. Only files count that a rule
      ended, so without `maxBytes` and `when` nothing is removed.
    - `when`, `interval`, `utc`, `atTime`: moments at which the log goes on in a new file.
    - `retain_bytes`, `retain_age` (seconds or timedelta): the oldest files go when all together are
      larger, or when they are older; 0 is no limit.
    - `compress`: closed files are compressed with "zstd", which `True` means too, or "gzip".

    Of this handler alone:

    - `encoding`: utf-8 unless given; `errors`: backslashreplace unless given, so that no record is
      lost for a character.
    - `delay`: open the log at the first record.
    - `on_full`: on a full disk "error" (`handleError` is called), "block" or "drop" (counted; a line
      tells how many).
    - `commit_on`: level from which a record is made to survive a power cut before the call returns.
    - `file_link`: false makes a new log in the directory `filename`, where `current` is the link.
    - `fill`, `segment_capacity_bytes`: how a new log is made; see `Log`.
    - `chmod`, `owner`: the permission bits of a new log's files, whatever the umask, and whose they
      are: a pair of a user and a group, by name or number; None is the one of this process. A log
      that is there stays as it is.
    """

    #: Whether a subclass has a say even where no filter was added.
    _has_own_filter = False

    def __init__(
        self,
        filename: str | os.PathLike[str],
        mode: str = "a",
        maxBytes: int | None = None,
        backupCount: int | None = None,
        encoding: str | None = None,
        delay: bool = False,
        errors: str | None = None,
        *,
        when: str | None = None,
        interval: int = 1,
        utc: bool = False,
        atTime: datetime.time | None = None,
        retain_bytes: int | None = None,
        retain_age: float | datetime.timedelta | None = None,
        compress: bool | Literal["zstd", "gzip", "none"] | None = None,
        on_full: Literal["error", "block", "drop"] | None = None,
        commit_on: int | str | None = None,
        fill: Literal["pwrite", "mapped"] | None = None,
        segment_capacity_bytes: int | None = None,
        owner: tuple[str | int | None, str | int | None] | None = None,
        chmod: int | None = None,
        file_link: bool = True,
        level: int | str = logging.NOTSET,
    ) -> None:
        if mode != "a":
            raise ValueError(f"mode is {mode!r}; a log that others write too is only appended to: 'a'")
        self.baseFilename = os.path.abspath(os.fspath(filename))
        self.encoding = codecs.lookup(encoding or "utf-8").name
        self.errors = errors or "backslashreplace"
        codecs.lookup_error(self.errors)
        self._commit_from = None if commit_on is None else _level_number(commit_on)
        kept = _count("backupCount", backupCount)
        self._options: dict[str, Any] = {
            "rotate_bytes": _count("maxBytes", maxBytes),
            "retain_files": _ALL if kept == 0 else kept,
            "retain_bytes": retain_bytes,
            "retain_age": retain_age,
            "compress": compress,
            "on_full": on_full,
            "fill": fill,
            "segment_capacity_bytes": segment_capacity_bytes,
            "file_link": file_link,
        }
        self._rights = Rights(owner, chmod)
        self._schedule = None if when is None else Schedule(when, interval, utc, atTime)
        self._log: Log | None = None
        self._worker: int | None = None
        self._opened_by: int | None = None
        self._has_warned = False
        self._write: _Write = self._open_and_write
        super().__init__(level)
        if not delay:
            self._open()

    @property
    def log(self) -> Log:
        """The log itself, for `stat`, `rotate` or `sync`; opened if it is not."""
        return self._open()

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        cls._has_own_filter = cls.filter is not logging.Handler.filter

    def createLock(self) -> None:
        """Makes no lock: appending needs none, and so none can be held while a process forks."""
        self.lock = None

    def handle(self, record: logging.LogRecord) -> Any:
        """Filters the record and emits it."""
        if self.filters or self._has_own_filter:
            passed = self.filter(record)
            if isinstance(passed, logging.LogRecord):
                record = passed
            elif not passed:
                return passed
        self.emit(record)
        return record if _HANDLE_RETURNS_RECORD else True

    def emit(self, record: logging.LogRecord) -> None:
        """Formats the record and appends it, with its newline, as one record of the log."""
        try:
            self._write(record, self.formatter)
        except RecursionError:
            raise
        except Removed:
            self._emit_anew(record)
        except PermissionDenied:
            self._warn_of_lost_rights()
            self.handleError(record)
        except Exception:
            self.handleError(record)

    def _emit_anew(self, record: logging.LogRecord) -> None:
        """Emits a record that the old log refused, in the log that is at its path now."""
        try:
            self._reopen()
            self._write(record, self.formatter)
        except RecursionError:
            raise
        except Exception:
            self.handleError(record)

    def _warn_of_lost_rights(self) -> None:
        """Says once what to do where a process has another user than the one that made the log."""
        path, user = self.baseFilename, os.geteuid()
        if self._has_warned or user == self._opened_by or not os.path.lexists(path):
            return
        self._has_warned = True
        files = f"{path}.d" if os.path.islink(path) else path
        by = "" if self._opened_by is None else f", which user {self._opened_by} opened"
        try:
            warnings.warn(
                f"user {user} may not write to {path}{by}: records are lost; give the log to that "
                f"user (chown -R {user} {files}) and start again",
                RuntimeWarning,
                stacklevel=2,
            )
        except RuntimeWarning:
            # Warnings are errors here; the record's own error is reported anyway.
            pass

    def doRollover(self) -> None:
        """Has the log go on in a new file, for all processes."""
        try:
            self._open().rotate()
        except Removed:
            self._reopen()

    def flush(self) -> None:
        """Does nothing: a record is with the operating system when `emit` returns."""

    def close(self) -> None:
        """Leaves the log. A record that comes later opens it again, as with `FileHandler`."""
        self._write = self._open_and_write
        log, self._log = self._log, None
        super().close()
        if log is not None:
            log.close()

    def _close_with_worker(self) -> None:
        """In a process of `multiprocessing`, which ends without what `atexit` and `logging` do then,
        closes the log when it ends."""
        if self._worker == os.getpid() or "multiprocessing.util" not in sys.modules:
            return
        from multiprocessing import parent_process, util

        if parent_process() is not None:
            self._worker = os.getpid()
            util.Finalize(None, _close, (weakref.ref(self),), exitpriority=_LAST)

    def _open(self) -> Log:
        log = self._log
        if log is not None:
            return log
        if self._schedule is not None:
            self._schedule.renew()
            every, offset = self._schedule.period, self._schedule.offset
            self._options.update(rotate_every=every, rotate_offset=offset)
        log = _open_log(self.baseFilename, self._options, self._rights)
        if self._log is not None:
            # Another thread was faster.
            log.close()
            return self._log
        return self._use(log)

    def _reopen(self) -> None:
        """Goes on in the log that is at the path now, or makes one like the old one there."""
        old = self._log
        if old is None:
            return
        log = old.reopen()
        if self._log is not old:
            # Another thread was faster, or has closed the handler.
            log.close()
            return
        self._use(log)
        # Files that could not be tidied there are gone with the old log.
        with contextlib.suppress(Error):
            old.close()

    def _use(self, log: Log) -> Log:
        self._log = log
        self._opened_by = os.geteuid()
        self._close_with_worker()
        writer = LineWriter(log, self.encoding, self.errors, self._commit_from)
        write: _Write = writer.write
        if type(self).format is not logging.Handler.format:
            write = lambda record, _: writer.write_formatted(record, self.format(record))
        schedule = self._schedule
        self._write = write if schedule is None else self._on_schedule(log, schedule, write)
        return log

    def _on_schedule(self, log: Log, schedule: Schedule, write: _Write) -> _Write:
        def write_on_schedule(
            record: logging.LogRecord, formatter: logging.Formatter | None
        ) -> None:
            write(record, formatter)
            if schedule.is_due():
                _follow_local_time(log, schedule)

        return write_on_schedule

    def _open_and_write(
        self, record: logging.LogRecord, formatter: logging.Formatter | None
    ) -> None:
        self._open()
        self._write(record, formatter)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy in another process needs: it opens the log for itself, at its first record,
        and takes the policy as it is by then."""
        state = self.__dict__.copy()
        state["_options"] = {name: self._options[name] for name in ("on_full", "file_link")}
        state["_rights"] = Rights(None, None)
        state["_schedule"] = None
        for name in ("_log", "_write", "lock"):
            state.pop(name, None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        name = state.pop("_name", None)
        logging.Handler.__init__(self, state["level"])
        self.__dict__.update(state)
        self._name = name
        self._log = None
        self._write = self._open_and_write

    def __repr__(self) -> str:
        level = logging.getLevelName(self.level)
        return f"<{type(self).__name__} {self.baseFilename} ({level})>"


#: Since Python 3.12 `handle` returns the record.
_HANDLE_RETURNS_RECORD = hasattr(logging, "getHandlerByName")


def _close(handler: weakref.ref[VellumHandler]) -> None:
    found = handler()
    if found is not None:
        found.close()


def _count(name: str, value: int | None) -> int | None:
    """What is not a number of things is refused under the name that the caller gave it."""
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = -1
    if not 0 <= number <= _ALL:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, 0 or more")
    return number


def _level_number(level: int | str) -> int:
    number = level if isinstance(level, int) else logging.getLevelName(level)
    if not isinstance(number, int):
        raise ValueError(f"commit_on is {level!r}, which is not the name of a level")
    return number


def _follow_local_time(log: Log, schedule: Schedule) -> None:
    """After a change to or from daylight saving time, tells the log when its periods begin now;
    unless somebody has changed that already."""
    told = (schedule.period, schedule.offset)
    schedule.renew()
    if schedule.offset == told[1]:
        return
    policy = log.stat()["policy"]
    if (policy["rotate_every"], policy["rotate_offset"]) == told:
        Log(log.path, kind="text", create=False, rotate_offset=schedule.offset).close()


def _open_log(path: str, options: dict[str, Any], rights: Rights) -> Log:
    """Opens the text log at `path`. One that is made anew is written by `pwrite`, unless its files
    are to be mapped: then no NUL ever stands behind its end for who follows the file."""
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return _join_or_make(path, given, rights)
    except Error as error:
        if os.path.isfile(path) and not os.path.islink(path):
            raise Incompatible(
                f"{path} is a file that is no log; rename the file, or give the log another name",
                error.errno, path,
            ) from error  # fmt: skip
        raise


def _join_or_make(path: str, given: dict[str, Any], rights: Rights) -> Log:
    """Joins the log that is there, however it is filled, or makes one that is not mapped."""
    joining = {**given, "create": False}
    try:
        return Log(path, kind="text", **joining)
    except FileNotFoundError:
        pass
    has_link = given["file_link"] and not os.path.isdir(path)
    try:
        with rights.of_new_log(f"{path}.d" if has_link else path):
            return Log(path, kind="text", create_new=True, mode=rights.mode, **given)
    except FileExistsError:
        # Another process was faster.
        return Log(path, kind="text", **joining)
