"""From the arguments of `VellumHandler` to the policy of the log: when files change, and which stay."""

from __future__ import annotations

import datetime
import logging
import pickle
import time
from pathlib import Path

import pytest

import vellum_log
from conftest import handler_to, lines
from vellum_log import Log, VellumHandler
from vellum_log.schedule import schedule


@pytest.fixture
def path(directory: str) -> str:
    """The log is a directory here, and its files are looked at."""
    return directory

DAY = 86400


def policy_of(path: str, **arguments: object) -> vellum_log.Policy:
    handler = handler_to(path, **arguments)
    policy = handler.log.stat()["policy"]
    handler.close()
    return policy


def test_arguments_become_the_policy(path: str) -> None:
    by_size = policy_of(path, maxBytes=5000, backupCount=3, retain_bytes=10**9)
    assert (by_size["rotate_bytes"], by_size["retain_files"]) == (5000, 3)
    assert by_size["retain_bytes"] == 10**9 and by_size["retain_age"] is None
    assert policy_of(path) == by_size, "what is left out stays"
    both = policy_of(path, when="H", interval=2, utc=True, retain_age=datetime.timedelta(days=1))
    changed = {"rotate_every": 7200, "rotate_offset": 0, "retain_age": DAY}
    assert both == {**by_size, **changed}
    without = policy_of(path, maxBytes=0, backupCount=0)
    assert without["rotate_bytes"] is without["retain_files"] is None
    with Log(path, rotate_every=datetime.timedelta(minutes=1), rotate_offset=1.0) as log:
        assert log.stat()["policy"]["rotate_every"] == 60


def test_a_pickled_handler_leaves_the_policy_alone(path: str) -> None:
    handler = handler_to(path, maxBytes=5000)
    copy = pickle.loads(pickle.dumps(handler))
    policy_of(path, maxBytes=7000)
    assert copy.log.stat()["policy"]["rotate_bytes"] == 7000
    copy.close()
    handler.close()


def test_the_log_goes_on_in_a_new_file_by_size(path: str, logger: logging.Logger) -> None:
    logger.addHandler(handler_to(path, maxBytes=1000))
    for number in range(100):
        logger.info("%d %s", number, "x" * 90)
    files = sorted(Path(path).glob("*.log"))
    assert len(files) > 5 and all(file.stat().st_size <= 1000 for file in files)
    text = "".join(file.read_text() for file in files)
    assert text == "".join(f"INFO {number} {'x' * 90}\n" for number in range(100))
    assert Path(path, "current").resolve() == files[-1].resolve()


def test_only_so_many_files_are_kept(path: str, logger: logging.Logger) -> None:
    logger.addHandler(handler_to(path, maxBytes=1000, backupCount=3))
    for number in range(100):
        logger.info("%d %s", number, "x" * 90)
    files = sorted(Path(path).glob("*.log"))
    assert len(files) == 4, "three closed ones and the current one"
    text = "".join(file.read_text() for file in files)
    first = int(text.split()[1])
    assert text == "".join(f"INFO {number} {'x' * 90}\n" for number in range(first, 100))


def test_what_no_rule_ends_is_not_removed(path: str, logger: logging.Logger) -> None:
    policy = {"when": "midnight", "interval": 365, "backupCount": 1}
    logger.addHandler(handler_to(path, segment_capacity_bytes=4096, **policy))
    for number in range(500):
        logger.info("%d %s", number, "x" * 90)
    assert len(list(Path(path).glob("*-more.log"))) > 5
    assert lines(path) == [f"INFO {number} {'x' * 90}\n" for number in range(500)]


def test_closed_files_are_compressed_and_still_read(path: str, logger: logging.Logger) -> None:
    logger.addHandler(handler_to(path, maxBytes=1000, compress=True))
    for number in range(100):
        logger.info("%d %s", number, "x" * 90)
    assert len(list(Path(path).glob("*.log.zst"))) > 5
    assert lines(path) == [f"INFO {number} {'x' * 90}\n" for number in range(100)]


def test_the_log_goes_on_in_a_new_file_when_told(path: str, logger: logging.Logger) -> None:
    handler = handler_to(path)
    logger.addHandler(handler)
    logger.info("before")
    handler.log.rotate()
    logger.info("after")
    files = sorted(Path(path).glob("*.log"))
    assert [file.read_text() for file in files] == ["INFO before\n", "INFO after\n"]
    with Log(path + ".framed") as framed, pytest.raises(vellum_log.Unsupported):
        framed.rotate()


class Clock:
    """Local time, and how far behind UTC it is."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self._real = time.time

    def turn(self, zone: str, ahead_seconds: int) -> None:
        self._monkeypatch.setenv("TZ", zone)
        time.tzset()
        self._monkeypatch.setattr(time, "time", lambda: self._real() + ahead_seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Clock:
    request.addfinalizer(time.tzset)
    request.addfinalizer(monkeypatch.undo)
    return Clock(monkeypatch)


def offset_in(handler: VellumHandler) -> int:
    return handler.log.stat()["policy"]["rotate_offset"]


def test_midnight_moves_with_daylight_saving_time(path: str, clock: Clock) -> None:
    record = logging.makeLogRecord({"msg": "x"})
    clock.turn("CET-1", 0)
    handler = handler_to(path, when="midnight")
    assert offset_in(handler) == DAY - 3600
    clock.turn("CEST-2", 0)
    handler.handle(record)
    assert offset_in(handler) == DAY - 3600, "nobody looks at every record"
    clock.turn("CEST-2", 900)
    handler.handle(record)
    assert offset_in(handler) == DAY - 7200
    clock.turn("CET-1", 1800)
    handler.handle(record)
    assert offset_in(handler) == DAY - 3600
    assert len(handler.log.stat()["segments"]) <= 2
    handler.close()
    clock.turn("EET-3", 1800)
    assert offset_in(handler) == DAY - 3 * 3600, "opened again"
    handler.close()


def test_daylight_saving_time_does_not_move_what_others_have_set(path: str, clock: Clock) -> None:
    clock.turn("CET-1", 0)
    handler = handler_to(path, when="midnight")
    Log(path, kind="text", rotate_every=3600, rotate_offset=60).close()
    copy = pickle.loads(pickle.dumps(handler))
    clock.turn("CEST-2", 900)
    for one in (handler, copy):
        one.handle(logging.makeLogRecord({"msg": "x"}))
        assert offset_in(one) == 60
        one.close()


@pytest.fixture(params=["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    request.addfinalizer(time.tzset)
    request.addfinalizer(monkeypatch.undo)
    return str(request.param)


@pytest.mark.parametrize("weekday", [None, 0, 3, 6])
@pytest.mark.parametrize("at", [None, datetime.time(6, 30, 15)])
def test_days_and_weeks_begin_in_local_time(
    zone: str, weekday: int | None, at: datetime.time | None
) -> None:
    when = "midnight" if weekday is None else f"W{weekday}"
    period, offset = schedule(when, 1, False, at)
    assert period == (DAY if weekday is None else 7 * DAY) and 0 <= offset < period
    now = time.time()
    moment = time.localtime(now - (now - offset) % period)
    if moment.tm_isdst != time.localtime(now).tm_isdst:
        pytest.skip("daylight saving time changed within the period")
    assert moment[3:6] == ((at.hour, at.minute, at.second) if at else (0, 0, 0))
    assert weekday is None or moment.tm_wday == weekday


@pytest.mark.parametrize(("when", "period"), [("S", 1), ("m", 60), ("H", 3600), ("D", DAY)])
def test_periods(when: str, period: int) -> None:
    assert schedule(when, 1, True, None) == (period, 0)
    assert schedule(when, 5, True, None) == (5 * period, 0)
    assert schedule(when, 1, True, datetime.time(5)) == (period, 0)
