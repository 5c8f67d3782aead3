"""One log that many processes append to, and a logging handler on top of it.

`Log` is the append log: records from any thread of any process, in order, whole, once.
`VellumHandler` is a `logging.Handler` that any number of processes may share: plain text files,
rotation that loses nothing, no lock, no server, no thread.
"""

from vellum_log._vellum_log import Log, Reader, Record
from vellum_log.errors import (
    Abandoned,
    AlreadyExists,
    Busy,
    Corrupt,
    Error,
    ErrorKind,
    Exhausted,
    Incompatible,
    InvalidOption,
    Io,
    NoSpace,
    NotFound,
    OutOfRange,
    PermissionDenied,
    Poisoned,
    ReadOnly,
    RecordTooLarge,
    TimedOut,
    TooManyParticipants,
    Trimmed,
    Unsupported,
)
from vellum_log.handler import VellumHandler
from vellum_log.reports import (
    Damage,
    Hold,
    Participant,
    Policy,
    Recovery,
    Segment,
    Stat,
    VerifyReport,
)

__all__ = [
    "Abandoned",
    "AlreadyExists",
    "Busy",
    "Corrupt",
    "Damage",
    "Error",
    "ErrorKind",
    "Exhausted",
    "Hold",
    "Incompatible",
    "InvalidOption",
    "Io",
    "Log",
    "NoSpace",
    "NotFound",
    "OutOfRange",
    "Participant",
    "PermissionDenied",
    "Poisoned",
    "Policy",
    "ReadOnly",
    "Reader",
    "Record",
    "RecordTooLarge",
    "Recovery",
    "Segment",
    "Stat",
    "TimedOut",
    "TooManyParticipants",
    "Trimmed",
    "Unsupported",
    "VellumHandler",
    "VerifyReport",
]
