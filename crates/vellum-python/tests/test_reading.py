"""Readers that wait for commits, records by position, and following in an event loop."""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
from datetime import datetime, timedelta, timezone

import pytest

from conftest import in_child
from vellum_log import (
    InvalidOption,
    Log,
    NoShipper,
    OutOfRange,
    TimedOut,
    Unsupported,
    follow_async,
)


def test_a_durable_reader_returns_what_was_committed_and_no_more(path: str) -> None:
    with Log(path) as log, Log(path, read_only=True) as view:
        lsn = log.append(b"one")
        readers = [log.read(durable=True), view.read(durable=True)]
        followers = [log.follow(timeout=0, durable=True), view.follow(timeout=0, durable=True)]
        assert [list(reader) for reader in readers + followers] == [[]] * 4
        log.commit(lsn)
        log.append(b"two")
        for reader in readers + followers:
            assert [record.payload for record in reader] == [b"one"]


def test_a_reader_goes_to_any_record(path: str) -> None:
    with Log(path) as log:
        lsns = [log.append(b"record %d" % number) for number in range(9)]
        reader = log.read()
        for number in [5, 2, 8, 0]:
            reader.seek(lsns[number])
            assert next(reader).payload == b"record %d" % number
        with pytest.raises(OutOfRange, match="no whole record"):
            reader.seek(lsns[3] + 8)
        assert next(reader).lsn == lsns[1], "it stays where it was"
    with pytest.raises(ValueError, match="closed"):
        reader.seek(lsns[0])


def test_waiting_until_readers_see_a_record(path: str) -> None:
    with Log(path) as log:
        lsn = log.append(b"one")
        log.wait_published(lsn)
        log.wait_published(lsn, timeout=0)
        assert log.read_at(lsn).payload == b"one"
        with pytest.raises(OutOfRange):
            log.wait_published(log.tail)


def test_waiting_for_a_commit_of_another_thread(path: str) -> None:
    with Log(path) as log:
        lsn = log.append(b"one")
        with pytest.raises(TimedOut, match="nobody has committed"):
            log.wait_durable(lsn, timeout=0.001)
        with pytest.raises(OutOfRange):
            log.wait_durable(log.tail)
        committer = threading.Thread(target=log.commit, args=(lsn,))
        committer.start()
        log.wait_durable(lsn)
        committer.join()
        assert log.durable > lsn


def test_nobody_waits_for_a_shipper_that_is_not_there(path: str) -> None:
    with Log(path) as log:
        lsn = log.append(b"one")
        with pytest.raises(NoShipper, match="durable here alone"):
            log.commit_remote(lsn)
        assert log.durable > lsn
        with pytest.raises(NoShipper):
            log.wait_shipped(lsn, timeout=10)
        with pytest.raises(OutOfRange):
            log.wait_shipped(log.tail)
        assert log.shipped == 0


def test_records_are_read_by_their_positions(path: str) -> None:
    with Log(path) as log:
        assert log.last_record() is None
        payloads = [b"first", b"", b"third" * 1000]
        lsns = log.append_each(payloads)
        assert [log.read_at(lsn).payload for lsn in lsns] == payloads
        assert log.read_at(lsns[0]).next_lsn == lsns[1]
        newest = log.last_record()
        assert newest is not None and newest.lsn == lsns[2]
        with pytest.raises(OutOfRange):
            log.read_at(lsns[2] + 8)


def test_records_have_times_and_are_found_by_them(path: str) -> None:
    with Log(path, envelope=True) as log:
        before = time.time_ns()
        log.append(b"one")
        middle = time.time_ns()
        log.append_batch([b"two", b"three"])
        one, two, three = log.read()
        assert one.time_ns is not None and before <= one.time_ns <= middle
        assert two.time_ns == three.time_ns and two.time_ns is not None
        assert one.time == datetime.fromtimestamp(0, timezone.utc) + timedelta(
            microseconds=one.time_ns // 1000
        )
        assert one.writer == two.writer and one.writer is not None
        assert one.writer.endswith(f"-{os.getpid()}")
        assert log.read_at(two.lsn).time_ns == two.time_ns
        assert list(log.reader_at_time(middle)) == [two, three]
        hour = timedelta(hours=1)
        now = datetime.now(timezone.utc)
        assert list(log.reader_at_time(now - hour)) == [one, two, three]
        assert list(log.reader_at_time(now + hour, durable=True)) == []
        start, end = log.positions_of_time(since=middle)
        assert start <= two.lsn and end is None
        start, end = log.positions_of_time(until=now + hour)
        assert start <= one.lsn and (end is None or end >= log.published)
        assert log.stat()["envelope"]
        with pytest.raises(TypeError):
            log.reader_at_time(datetime.now())  # noqa: DTZ005
    with pytest.raises(InvalidOption, match="envelope"):
        Log(path, envelope=False)


def test_a_log_without_envelopes_tells_no_times(path: str) -> None:
    with Log(path) as log:
        log.append(b"one")
        (record,) = log.read()
        assert record.time is None and record.time_ns is None and record.writer is None
        with pytest.raises(Unsupported, match="envelopes"):
            log.reader_at_time(0)
        with pytest.raises(Unsupported, match="envelopes"):
            log.positions_of_time(since=0)
        assert not log.stat()["envelope"]
        assert log.stat()["ship"] is None


def test_records_are_read_from_the_newest_back(path: str) -> None:
    with Log(path) as log:
        lsns = [log.append(b"%d" % number) for number in range(100)]
        assert [record.lsn for record in log.backwards()] == lsns[::-1]
        assert next(log.backwards(lsns[40])).payload == b"39"
        assert log.backwards().take_gaps() == []


def test_a_pollable_reader_wakes_who_selects(path: str) -> None:
    with Log(path) as log:
        with pytest.raises(ValueError, match="no file descriptor"):
            log.read().fileno()
        reader = log.read(pollable=True)
        assert list(reader) == []
        thread = threading.Thread(target=log.append, args=(b"one",))
        thread.start()
        found: list[bytes] = []
        while not found:
            select.select([reader], [], [])
            found = [record.payload for record in reader]
        thread.join()
        assert found == [b"one"]


def test_a_forked_child_makes_a_pollable_reader_of_its_own(path: str) -> None:
    with Log(path) as log:
        reader = log.read(pollable=True)
        assert list(reader) == []

        def child() -> None:
            with pytest.raises(Unsupported):
                next(reader)

        in_child(child)


@pytest.mark.parametrize("durable", [False, True])
def test_an_event_loop_follows_what_a_child_appends(path: str, durable: bool) -> None:
    count = 50

    async def follow(log: Log) -> list[bytes]:
        found = []
        async for record in follow_async(log, durable=durable):
            found.append(record.payload)
            if len(found) == count:
                break
        return found

    with Log(path) as log:
        child = os.fork()
        if child == 0:
            for number in range(count):
                log.append_durable(b"%d" % number)
            os._exit(0)
        found = asyncio.run(asyncio.wait_for(follow(log), timeout=60))
        os.waitpid(child, 0)
        assert found == [b"%d" % number for number in range(count)]


def test_closing_the_log_ends_who_follows_in_an_event_loop(path: str) -> None:
    async def follow(log: Log) -> None:
        async for _ in follow_async(log):
            log.close()

    log = Log(path)
    log.append(b"one")
    with pytest.raises(ValueError, match="closed"):
        asyncio.run(asyncio.wait_for(follow(log), timeout=60))


def test_a_reader_with_an_end_stops_there_and_waits_for_nothing(path: str) -> None:
    with Log(path) as log:
        places = [log.append(b"%d" % number) for number in range(10)]
        for end, count in [(places[4], 4), (places[4] + 1, 5), (log.published, 10), (0, 0)]:
            for reader in (log.read(end=end), log.follow(end=end)):
                assert [record.payload for record in reader] == [b"%d" % n for n in range(count)]
                assert reader.position >= end
        assert len(list(log.read(places[2], end=places[5], durable=True))) == 0
        log.commit(places[9])
        assert len(list(log.read(places[2], end=places[5], durable=True, pollable=True))) == 3
        # The end of the log comes first.
        beyond = log.read(end=2**62)
        assert len(list(beyond)) == 10 and beyond.position < 2**62
