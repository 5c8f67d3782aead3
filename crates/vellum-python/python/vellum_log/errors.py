"""What can go wrong: one class for each kind, all of them `Error`, which is an `OSError`.

Match on the class or on `kind`, never on the text. The numbers of `ErrorKind` are the same in the
C interface, and stay.
"""

from __future__ import annotations

import enum
from typing import ClassVar


class ErrorKind(enum.IntEnum):
    """What sort of thing went wrong."""

    IO = 1
    NO_SPACE = 2
    NOT_FOUND = 3
    ALREADY_EXISTS = 4
    PERMISSION_DENIED = 5
    READ_ONLY = 6
    UNSUPPORTED = 7
    INVALID_OPTION = 8
    RECORD_TOO_LARGE = 9
    TOO_MANY_PARTICIPANTS = 10
    TRIMMED = 11
    OUT_OF_RANGE = 12
    CORRUPT = 13
    INCOMPATIBLE = 14
    EXHAUSTED = 15
    ABANDONED = 16
    BUSY = 17
    POISONED = 18
    TIMED_OUT = 19
    REMOVED = 20
    REWOUND = 21
    OTHER_LOG = 22
    NO_SHIPPER = 23
    FENCED = 24
    IN_USE = 25


class Error(OSError):
    """An error of a log.

    `str()` of it is a sentence that names the operation, the file and the value. `errno` is the
    operating system's number where that refused, and else None; `path` (also `filename`) and `lsn`
    are the file and the position it is about, or None.
    """

    kind: ClassVar[ErrorKind] = ErrorKind.IO
    path: str | None
    lsn: int | None

    def __init__(
        self,
        message: str,
        errno: int | None = None,
        path: str | None = None,
        lsn: int | None = None,
    ) -> None:
        super().__init__(message)
        self.errno = errno
        self.strerror = message
        self.path = self.filename = path
        self.lsn = lsn

    def __str__(self) -> str:
        return str(self.strerror)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.strerror, self.errno, self.path, self.lsn)


class Io(Error):
    """The operating system refused an operation for a reason that has no kind of its own."""


class NoSpace(Error):
    """The disk, the quota or the file-size limit is exhausted. Nothing was appended."""

    kind = ErrorKind.NO_SPACE


class NotFound(Error, FileNotFoundError):
    """There is no log at this path."""

    kind = ErrorKind.NOT_FOUND


class AlreadyExists(Error, FileExistsError):
    """There is already a log or file at this path, and a new one was asked for."""

    kind = ErrorKind.ALREADY_EXISTS


class PermissionDenied(Error, PermissionError):
    """The permissions of the log do not allow this."""

    kind = ErrorKind.PERMISSION_DENIED


class ReadOnly(Error):
    """The log was opened for reading only."""

    kind = ErrorKind.READ_ONLY


class Unsupported(Error):
    """The filesystem, the kernel or this sort of log cannot do it."""

    kind = ErrorKind.UNSUPPORTED


class InvalidOption(Error, ValueError):
    """An option is out of range, or the log has another kind of records."""

    kind = ErrorKind.INVALID_OPTION


class RecordTooLarge(Error, ValueError):
    """The record or batch is longer than 4 GiB - 1."""

    kind = ErrorKind.RECORD_TOO_LARGE


class TooManyParticipants(Error):
    """As many processes as there is room for have the log open."""

    kind = ErrorKind.TOO_MANY_PARTICIPANTS


class Trimmed(Error, LookupError):
    """The position is no longer kept."""

    kind = ErrorKind.TRIMMED


class OutOfRange(Error, LookupError):
    """The position is beyond the end, or is not the start of a record."""

    kind = ErrorKind.OUT_OF_RANGE


class Corrupt(Error):
    """The log holds bytes that no crash explains."""

    kind = ErrorKind.CORRUPT


class Incompatible(Error):
    """Not a log, or a log of another format version."""

    kind = ErrorKind.INCOMPATIBLE


class Exhausted(Error):
    """The address space of the log (16 PiB) is used up."""

    kind = ErrorKind.EXHAUSTED


class Abandoned(Error):
    """A reservation was left incomplete and has been abandoned."""

    kind = ErrorKind.ABANDONED


class Busy(Error):
    """The log is in use in a way that excludes this operation."""

    kind = ErrorKind.BUSY


class Poisoned(Error):
    """A write or sync failed before: nothing more can be made durable until every process has
    closed the log and one has opened it again."""

    kind = ErrorKind.POISONED


class TimedOut(Error, TimeoutError):
    """Another process held what the call needs for longer than the call was to wait; `str()` of it
    names that process. The call has changed nothing."""

    kind = ErrorKind.TIMED_OUT


class Removed(Error):
    """The log's directory was removed or moved while the log was open, or its files were. What was
    appended before is where the directory went. `Log.reopen` goes on in a new log."""

    kind = ErrorKind.REMOVED


class Rewound(Error, LookupError):
    """A `Position` was taken before a power cut or a truncation took back what was there. `lsn` is
    from where on the log may differ, or None where that is not known."""

    kind = ErrorKind.REWOUND


class OtherLog(Error, LookupError):
    """A `Position` is of another log."""

    kind = ErrorKind.OTHER_LOG


class NoShipper(Error):
    """No process ships the log, so nothing can be waited for. What was committed is committed."""

    kind = ErrorKind.NO_SHIPPER


class Fenced(Error):
    """Another machine, or another copy of the log, has taken over what this log is shipped to.
    What was committed is committed here, and is not shipped."""

    kind = ErrorKind.FENCED


class InUse(Error):
    """Another process has the log open for writing, or another `Log` of this one, and one of the
    two wants to be the only one (`exclusive`). The text names the process."""

    kind = ErrorKind.IN_USE


_BY_KIND: dict[int, type[Error]] = {
    error.kind: error
    for error in (
        Io, NoSpace, NotFound, AlreadyExists, PermissionDenied, ReadOnly, Unsupported,
        InvalidOption, RecordTooLarge, TooManyParticipants, Trimmed, OutOfRange, Corrupt,
        Incompatible, Exhausted, Abandoned, Busy, Poisoned, TimedOut, Removed,
        Rewound, OtherLog, NoShipper, Fenced, InUse,
    )
}  # fmt: skip


def _from_native(
    kind: int, message: str, errno: int | None, path: object, lsn: int | None
) -> Error:
    """The exception for an error of the native part; a kind that is newer than this file is
    `Error` itself."""
    return _BY_KIND.get(kind, Error)(message, errno, None if path is None else str(path), lsn)
