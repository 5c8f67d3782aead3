"""`Log.wal`: a log that commits, recovers from its checkpoint, and says when the next one is due."""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import select
import signal
from pathlib import Path

import pytest

import vellum_log
from conftest import in_child
from vellum_log import CheckpointEvent, Log

LIMIT = 4096


def small(path: str) -> Log:
    return Log.wal(
        path, exclusive=False, segment_capacity_bytes=16384, checkpoint_after_bytes=LIMIT
    )


def is_readable(event: CheckpointEvent) -> bool:
    return select.select([event], [], [], 0)[0] == [event]


def fill(log: Log) -> None:
    while not log.checkpoint_due:
        log.append_durable(bytes(500))


def test_wal_opens_a_staged_log_with_the_arguments_of_log(path: str) -> None:
    with Log.wal(path, segment_capacity_bytes=1 << 20) as log:
        assert log.stat()["fill"] == "staged" and log.layout == "framed"
        assert not log.checkpoint_due
    with pytest.raises(vellum_log.AlreadyExists):
        Log.wal(path, create_new=True)
    with pytest.raises(TypeError, match="kind"):
        Log.wal(path, kind="text")  # type: ignore[call-arg]


def test_a_checkpoint_is_due_after_so_many_bytes(path: str) -> None:
    with small(path) as log:
        fill(log)
        assert log.durable - log.begin >= LIMIT
        log.set_checkpoint(log.durable)
        assert not log.checkpoint_due
        fill(log)
        copy = pickle.loads(pickle.dumps(log))
        assert copy.checkpoint_due, "a copy in another process has the same limit"


def test_a_trim_keeps_no_segments_where_the_program_wants_none(path: str) -> None:
    for most, fewest, highest in ((None, 3, 9), (0, 0, 1)):
        with Log.wal(
            f"{path}-{most}", segment_capacity_bytes=16384, spare_segments_max=most
        ) as log:
            for _ in range(320):
                log.append_durable(bytes(1000))
            log.trim(log.published)
            assert fewest <= log.release_prepared() <= highest


def test_a_log_has_one_owner(path: str) -> None:
    with Log.wal(path):
        for options in ({"kind": "wal"}, {}):
            with pytest.raises(vellum_log.InUse, match=str(os.getpid())):
                Log(path, **options)
        assert Log(path, read_only=True).begin > 0
    Log.wal(path, exclusive=False).append(b"shared")


def test_an_event_says_that_a_checkpoint_is_due(path: str) -> None:
    with small(path) as log:
        event = log.checkpoint_event()
        assert not is_readable(event) and not event.take()
        fill(log)
        assert is_readable(event) and event.take() and not is_readable(event)
        log.append_durable(b"as long as it is due")
        assert is_readable(event)
        log.set_checkpoint(log.durable)
        assert not event.take()


def test_an_event_loop_waits_for_it(path: str) -> None:
    async def checkpoint_when_due(log: Log) -> int:
        event = log.checkpoint_event()
        due = asyncio.Event()
        asyncio.get_running_loop().add_reader(event, due.set)
        filling = asyncio.to_thread(fill, log)
        await asyncio.wait_for(asyncio.gather(due.wait(), filling), 60)
        asyncio.get_running_loop().remove_reader(event)
        assert event.take()
        log.set_checkpoint(log.durable)
        return log.checkpoint

    with small(path) as log:
        assert asyncio.run(checkpoint_when_due(log)) == log.checkpoint > 0


def test_a_forked_child_leaves_the_event_to_its_parent(path: str) -> None:
    def act() -> None:
        fill(log)
        with pytest.raises(vellum_log.Unsupported):
            event.take()

    with small(path) as log:
        event = log.checkpoint_event()
        assert in_child(act) == 0
        assert not is_readable(event) and log.checkpoint_due


def recovered(path: str) -> tuple[Log, int]:
    """The log, and a counter that was stored in the snapshot and counted on in the log."""
    snapshot = Path(path + ".snapshot")
    start, count = map(int, snapshot.read_text().split()) if snapshot.exists() else (0, 0)
    log = small(path)
    assert start >= log.checkpoint
    for record in log.read(start):
        assert int(record.payload) == count + 1
        count += 1
    log.sync()
    return log, count


def store(path: str, end: int, count: int) -> None:
    new = path + ".new"
    with open(new, "w") as file:
        file.write(f"{end} {count}")
        file.flush()
        os.fsync(file.fileno())
    os.rename(new, path + ".snapshot")
    directory = os.open(os.path.dirname(path), os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def work(path: str, told: int) -> None:
    log, count = recovered(path)
    while True:
        log.append_durable(b"%d" % (count + 1))
        count += 1
        os.write(told, count.to_bytes(8, "little"))
        if log.checkpoint_due:
            end = log.published
            log.sync()
            store(path, end, count)
            log.set_checkpoint(end)
            log.trim(end)


def test_a_killed_program_has_what_it_acknowledged(path: str) -> None:
    count = 0
    for _ in range(10):
        hear, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                work(path, told)
            finally:
                os._exit(1)
        os.close(told)
        with open(hear, "rb", buffering=0) as acknowledged:
            for _ in range(80):
                count = int.from_bytes(acknowledged.read(8), "little")
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            while number := acknowledged.read(8):
                count = int.from_bytes(number, "little")
        log, found = recovered(path)
        assert found in (count, count + 1)
        log.close()
    with small(path) as log:
        assert log.begin > 16384, "it was trimmed"


def test_closing_raises_what_could_not_be_committed(path: str) -> None:
    def close_on_a_full_disk() -> None:
        log = Log.wal(path)
        log.append(b"a record")
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        with pytest.raises(vellum_log.NoSpace):
            log.close()
        assert log.closed
        log.close()

    assert in_child(close_on_a_full_disk) == 0
    with Log.wal(path) as log:
        assert [record.payload for record in log.read()] == [b"a record"]
        reader = log.read()
    # The reader that holds it open is no error.
    assert log.closed and reader is not None
