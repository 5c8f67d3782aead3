"""From the `when`, `interval`, `utc` and `atTime` of `TimedRotatingFileHandler` to the period and
offset of a log's policy, in seconds."""

from __future__ import annotations

import datetime
import time

_DAY = 24 * 60 * 60
_PERIODS = {"S": 1, "M": 60, "H": 60 * 60, "D": _DAY, "MIDNIGHT": _DAY}
#: 1970-01-01, from which periods are counted, was a Thursday; weeks of `W0` begin on Monday.
_FIRST_MONDAY = 4 * _DAY
#: Local time changes against UTC at full quarters of an hour.
_QUARTER = 15 * 60


class Schedule:
    """The period and the offset of `when`, with local time as it was when this was last asked."""

    def __init__(
        self, when: str, interval: int, utc: bool, at_time: datetime.time | None
    ) -> None:
        self._arguments = (when, interval, utc, at_time)
        self.renew()

    def renew(self) -> None:
        """Takes local time as it is now."""
        self.period, self.offset = schedule(*self._arguments)
        self._renew_at = (time.time() // _QUARTER + 1) * _QUARTER

    def is_due(self) -> bool:
        """Whether local time may have changed since."""
        return time.time() >= self._renew_at


def schedule(
    when: str, interval: int, utc: bool, at_time: datetime.time | None
) -> tuple[int, int]:
    """The period and the offset: files change at the multiples of the period since 1970, moved by
    the offset.

    Without `utc` the offset makes up for the difference of local time now, so days begin at local
    midnight until daylight saving time changes it.
    """
    if not isinstance(interval, int) or interval < 1:
        raise ValueError(f"interval is {interval!r}; it must be a whole number, 1 or more")
    unit, begin = _unit(when.upper())
    period = unit * interval
    if when.upper() == "MIDNIGHT" or when.upper().startswith("W"):
        begin += _seconds(at_time)
    local = 0 if utc else time.localtime().tm_gmtoff
    return period, (begin - local) % period


def _unit(when: str) -> tuple[int, int]:
    """The length of a unit, and when the first one began."""
    if when in _PERIODS:
        return _PERIODS[when], 0
    if len(when) == 2 and when[0] == "W" and when[1] in "0123456":
        return 7 * _DAY, _FIRST_MONDAY + int(when[1]) * _DAY
    raise ValueError(f"when is {when!r}; it must be S, M, H, D, midnight, or W0 (Monday) to W6")


def _seconds(at_time: datetime.time | None) -> int:
    if at_time is None:
        return 0
    return at_time.hour * 3600 + at_time.minute * 60 + at_time.second
